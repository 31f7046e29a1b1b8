"""openapi.py: compares an answer with docs/openapi.yaml. It has only the part of JSON Schema that the file uses. Any other
keyword is an error, so that nothing stays unchecked."""
import importlib
import os
import re
import sys

import yaml

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "openapi.yaml")
IGNORED = {"description", "example", "summary", "default"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float)}


def independent():
    """python3-jsonschema's validator of OpenAPI 3.1's dialect: installed, or unpacked by `tools/install-deps test`. None: neither."""
    unpacked = os.path.join(os.path.dirname(FILE), "..", "build", "deps", "python", "usr", "lib", "python3", "dist-packages")
    for path in sys.path, [*sys.path, unpacked]:
        before, sys.path = sys.path, path
        try:
            return importlib.import_module("jsonschema").Draft202012Validator
        except (ImportError, AttributeError):
            sys.modules.pop("jsonschema", None)
        finally:
            sys.path = before
    return None


class Validator:
    def __init__(self):
        with open(FILE, encoding="utf-8") as file:
            self.spec = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # libyaml takes a tenth of the time
        self.other = independent()

    def objection(self, value, schema):
        """The independent validator's objection to the value. None: it has none, or it isn't installed."""
        if self.other is None:
            return None
        whole = {"allOf": [schema], "components": self.spec["components"]}  # where "#/components/…" leads
        error = next(self.other(whole).iter_errors(value), None)
        return None if error is None else f"{error.json_path}: {error.message[:200]}"

    def resolve(self, node):
        while "$ref" in node:
            target = self.spec
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def is_type(self, value, name):
        if name in ("integer", "number") and isinstance(value, bool):
            return False
        if name == "integer":
            return isinstance(value, int)
        return isinstance(value, TYPES[name])

    def check(self, value, schema, place="$"):
        schema = self.resolve(schema)
        for keyword, rule in schema.items():
            getattr(self, "rule_" + keyword, self.unknown)(value, rule, place, schema) if keyword not in IGNORED else None

    def unknown(self, value, rule, place, schema):
        raise AssertionError(f"{place}: this validator doesn't know a keyword of {sorted(schema)}")

    def fail(self, place, text):
        raise AssertionError(f"{place}: {text}")

    def rule_type(self, value, rule, place, schema):
        names = rule if isinstance(rule, list) else [rule]
        if not any(self.is_type(value, name) for name in names):
            self.fail(place, f"expected {rule}, found {value!r}")

    def rule_enum(self, value, rule, place, schema):
        if value not in rule:
            self.fail(place, f"expected one of {rule}, found {value!r}")

    def rule_const(self, value, rule, place, schema):
        if value != rule or isinstance(value, bool) != isinstance(rule, bool):  # to Python True is 1
            self.fail(place, f"expected {rule!r}, found {value!r}")

    def rule_required(self, value, rule, place, schema):
        missing = set(rule) - set(value) if isinstance(value, dict) else set()
        if missing:
            self.fail(place, f"without {sorted(missing)}")

    def rule_properties(self, value, rule, place, schema):
        for name, sub in rule.items():
            if isinstance(value, dict) and name in value:
                self.check(value[name], sub, f"{place}.{name}")

    def rule_additionalProperties(self, value, rule, place, schema):
        for name, sub in value.items():
            if name not in schema.get("properties", {}):
                self.check(sub, rule, f"{place}.{name}")

    def rule_items(self, value, rule, place, schema):
        for i, sub in enumerate(value if isinstance(value, list) else []):
            self.check(sub, rule, f"{place}[{i}]")

    def rule_minItems(self, value, rule, place, schema):
        if len(value) < rule:
            self.fail(place, "too few items")

    def rule_maxItems(self, value, rule, place, schema):
        if len(value) > rule:
            self.fail(place, "too many items")

    def rule_allOf(self, value, rule, place, schema):
        for sub in rule:
            self.check(value, sub, place)

    def rule_oneOf(self, value, rule, place, schema):
        why = []
        for sub in rule:
            try:
                self.check(value, sub, place)
            except AssertionError as error:
                why.append(str(error))
        if len(why) != len(rule) - 1:
            self.fail(place, f"{len(rule) - len(why)} of {len(rule)} forms fit: {'; '.join(why)}")

    def answer(self, method, path, status, content):
        """Checks one JSON answer. The path shows its route."""
        for route, operations in self.spec["paths"].items():
            pattern = re.sub(r"\{\w+\}", "[^/]+", route)
            if re.fullmatch(pattern, path.split("?")[0]) and method.lower() in operations:
                responses = operations[method.lower()]["responses"]
                if str(status) not in responses:
                    self.fail(f"{method} {path}", f"{status} isn't declared")
                body = self.resolve(responses[str(status)]).get("content", {}).get("application/json")
                if body is not None:
                    self.check(content, body["schema"], f"{method} {path} {status}")
                    why = self.objection(content, body["schema"])
                    if why is not None:
                        self.fail(f"{method} {path} {status}", f"python3-jsonschema says: {why}")
                return
        if status not in (404, 405):
            raise AssertionError(f"{method} {path}: docs/openapi.yaml has no such route")
        self.check(content, self.spec["components"]["schemas"]["Error"], f"{method} {path} {status}")

    def examples(self):
        for name, schema in self.spec["components"]["schemas"].items():
            if "example" in schema:
                self.check(schema["example"], schema, name)
