// What views know of the controller's words is what docs/openapi.yaml says these are: an answer in another word would go unmarked.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { trunkTones } from "../../src/ui/fabric.tsx";
import { severities } from "../../src/views/alerts.tsx";
import { clockTones } from "../../src/views/clock.tsx";
import { healthTones } from "../../src/views/fleet.tsx";
import { jobTones } from "../../src/views/jobs.tsx";
import { levelTones } from "../../src/views/levels.tsx";
import { portTones } from "../../src/views/links.tsx";
import { pathTones } from "../../src/views/mesh.tsx";
import { stateTones } from "../../src/views/settings.tsx";

const spec = readFileSync("../docs/openapi.yaml", "utf8"); // tests run in web/

/** The words of a schema, or of a field of it. */
function words(schema: string, field = ""): string[] {
  const text = spec.split(new RegExp(`\\n    ${schema}:`))[1]!.split(/\n {4}[A-Z]/)[0]!;
  const found = new RegExp(`${field === "" ? "" : `\\b${field}: \\{`}enum: \\[([^\\]]*)\\]`).exec(text)!;
  return found[1]!.split(", ").sort();
}

test("every word that the controller has for a state is one that the page marks", () => {
  for (const [tones, schema, field] of [
    [healthTones, "Health"], [portTones, "PortState"], [pathTones, "PathState"], [jobTones, "JobState"], [severities, "Severity"],
    [clockTones, "Clock", "status"], [levelTones, "LevelPage", "state"], [trunkTones, "Fabric", "state"], [stateTones, "ConfigVersion", "state"],
  ] as const) {
    assert.deepEqual(Object.keys(tones).sort(), words(schema, field), schema);
  }
});
