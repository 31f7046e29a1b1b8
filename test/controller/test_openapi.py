#!/usr/bin/env python3
"""docs/openapi.yaml and our validator of it, checked by python3-jsonschema, an independent implementation of JSON Schema."""
import copy
import glob
import os
import re
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import openapi  # noqa: E402


def places(value, path=()):
    """Each place in a value, and its content."""
    yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, sub in inside:
        yield from places(sub, (*path, key))


def spoilt(value):
    """The value with one error, again and again: a missing part, or a part of another kind."""
    for path, found in places(value):
        if not path:
            continue
        for wrong in (None, "nonsense", -1, 1.5, True, [], {}):
            copied = copy.deepcopy(value)
            at = copied
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = wrong
            yield copied
        if isinstance(path[-1], str):
            del at[path[-1]]
            yield copied


class TestOpenapi(unittest.TestCase):
    def setUp(self):
        self.spec = openapi.Validator()

    def test_every_operation_says_what_may_come(self):
        """A generated client names its functions by operationId. Each operation lists the answers that any request may get."""
        seen = set()
        for path, item in self.spec.spec["paths"].items():
            for method, operation in item.items():
                if method == "parameters":
                    continue
                self.assertNotIn(operation["operationId"], seen)
                seen.add(operation["operationId"])
                self.assertLessEqual(set(operation["tags"]), {tag["name"] for tag in self.spec.spec["tags"]}, path)
                declared = set(operation["responses"])
                if operation.get("security") != []:
                    self.assertLessEqual({"200", "400", "401", "403", "429", "503"}, declared, f"{method} {path}")
                self.assertEqual("304" in declared, method == "get" and not path.endswith("/stream"), f"{method} {path}")
                self.assertEqual("413" in declared, method == "post", f"{method} {path}")
        self.assertGreater(len(seen), 40)

    def test_the_dashboard_asks_for_what_there_is(self):
        """A parameter that isn't there is refused."""
        web, asked = os.path.join(TOP, "web", "src"), 0
        for name in glob.glob(os.path.join(web, "**", "*.ts*"), recursive=True):
            with open(name, encoding="utf-8") as file:
                text = re.sub(r"\$\{[^{}`]*\}", "1", file.read())
            for path, query in re.findall(r"[`\"]([a-z][a-z0-9/-]*)\?([^`\"]*)[`\"]", text):
                operations = [item["get"] for template, item in self.spec.spec["paths"].items()
                              if "get" in item and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), "/api/v1/" + path)]
                if operations:
                    there = {self.spec.resolve(p)["name"] for p in operations[0].get("parameters", [])}
                    self.assertLessEqual(set(re.findall(r"(?:^|&)([a-z_]+)=", query)), there, f"{name}: {path}?{query}")
                    asked += 1
        self.assertGreater(asked, 20)

    def own(self, value, schema):
        try:
            self.spec.check(value, schema)
            return True
        except AssertionError:
            return False

    def test_examples(self):
        self.spec.examples()

    def other(self):
        if self.spec.other is None:
            self.skipTest("no python3-jsonschema: tools/install-deps test")
        return self.spec.other

    def test_schemas_are_schemas(self):
        self.other().check_schema({"$defs": self.spec.spec["components"]["schemas"]})

    def test_both_say_the_same(self):
        """The independent validator and ours refuse the same values."""
        self.other()
        judged = refused = 0
        for name, schema in self.spec.spec["components"]["schemas"].items():
            for value in [schema["example"], *spoilt(schema["example"])] if "example" in schema else []:
                own, why = self.own(value, schema), self.spec.objection(value, schema)
                self.assertEqual(own, why is None, f"{name}: {value}: {why}")
                judged, refused = judged + 1, refused + (why is not None)
        self.assertGreater(judged, 500)
        self.assertGreater(refused, 300)


if __name__ == "__main__":
    unittest.main()
