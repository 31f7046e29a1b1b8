// Jobs and Savings: until agents report jobs there are none, and the page says so rather than showing zeros.
import { useResource } from "../resource.ts";
import type { Page } from "../model.ts";
import { Empty, Shown } from "../ui/state.tsx";

export function Jobs() {
  const jobs = useResource<Page<unknown>>("jobs", 10_000, ["job"]);
  return (
    <>
      <h1>Jobs</h1>
      {jobs.failure?.kind === "missing" ? <Empty>No job is measured: this version's agents report none yet.</Empty> : <Shown of={jobs} what="jobs">{(page) => <Empty>{page.items.length === 0 ? "No job runs with Foliot's plugin." : `${page.items.length} jobs.`}</Empty>}</Shown>}
    </>
  );
}

export function Savings() {
  return (
    <>
      <h1>Savings</h1>
      <Empty>Nothing to add up: savings come from jobs, and no job has been measured.</Empty>
    </>
  );
}
