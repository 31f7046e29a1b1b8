"""previous.py: the version before this tree, built from the repository's own history."""
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def git(*words):
    done = subprocess.run(["git", "-C", TOP, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def last_tag():
    return git("describe", "--tags", "--abbrev=0", "HEAD^")


def commit_before(count):
    """The commit so many steps back on the main line; empty if the history is shorter."""
    return git("rev-list", "--first-parent", "--max-count=1", f"--skip={count}", "HEAD")


def build(commit, folder, targets):
    """Its build folder, or None with the reason. Ninja reuses what an earlier call left in `folder`."""
    tree = os.path.join(folder, "tree")
    steps = [] if os.path.exists(tree) else [["git", "clone", "-q", "--shared", "--no-checkout", TOP, tree]]
    steps += [["git", "-C", tree, "checkout", "-q", "--detach", commit],
              ["ln", "-sfn", os.path.join(TOP, "web", "node_modules"), os.path.join(tree, "web", "node_modules")]]
    if not os.path.exists(os.path.join(tree, "build", "build.ninja")):
        steps.append(["meson", "setup", os.path.join(tree, "build"), tree])
    steps.append(["ninja", "-C", os.path.join(tree, "build"), *targets])
    for words in steps:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, f"{commit} can't be built: {' '.join(words)}: {(done.stderr or done.stdout)[-300:]}"
    return os.path.join(tree, "build"), commit
