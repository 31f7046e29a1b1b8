// node openapi.mjs FILE: is it an OpenAPI document at all? Judged by the specification's own schema, in somebody else's hands.
import { access } from "node:fs/promises";

const file = process.argv[2];
await access(file);
let Validator;
try {
  ({ Validator } = await import("@seriousme/openapi-schema-validator"));
} catch {
  console.log("skipped: no @seriousme/openapi-schema-validator in web/node_modules: npm ci");
  process.exit(77);
}
const validator = new Validator();
const verdict = await validator.validate(file);
if (!verdict.valid) {
  console.error(verdict.errors);
  process.exit(1);
}
// Would it be noticed? The same document with a slip that only the specification forbids.
const slip = structuredClone(validator.specification);
Object.values(slip.paths)[0].get.parameters = [{ name: "x", in: "nowhere", schema: {} }];
if ((await new Validator().validate(slip)).valid) {
  console.error("a parameter that is nowhere passed");
  process.exit(1);
}
