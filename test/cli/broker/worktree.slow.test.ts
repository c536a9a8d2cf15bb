/** `errand work --worktree`: a git worktree for each conversation, and its changes as an artifact. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPERATOR } from "../../support/broker.ts";
import { errand, freshDir } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { setup } from "./cli.ts";

const AUTHOR = {
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.org",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.org",
};

/** A repository with one commit, a worker in a folder of it that runs its tasks as scripts, and the broker. */
async function scene(folder = "") {
  const setting = await setup();
  const { dir, api, url } = setting;
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: dir, env: { ...process.env, ...AUTHOR }, stdio: "pipe" }).toString();
  git("init", "--quiet", "--initial-branch", "main");
  mkdirSync(join(dir, "sub"));
  writeFileSync(join(dir, "sub", "a.txt"), "one\ntwo\n");
  writeFileSync(join(dir, ".gitignore"), "*.log\nstate/\n.errand/\n");
  git("add", ".");
  git("commit", "--quiet", "-m", "first");
  const state = join(dir, "state");
  const home = join(state, "errand", "worktrees");
  const work = async (more: Record<string, string> = {}) => {
    const env = { ...AUTHOR, XDG_STATE_HOME: state, GIT_DIR: "/nowhere", ...more };
    const words = ["work", "--agent", "coder", "--preset", "shell", "--worktree", "--concurrency", "2"];
    const worker = errand(join(dir, folder), words, { ERRAND_URL: url, ERRAND_TOKEN: OPERATOR, ...env });
    await until(() => worker.stderr().includes("working for coder") || !worker.isRunning());
    return worker;
  };
  const end = async (id: string) => (await api.get(id, "?wait_seconds=30")).body;
  const delegate = async (task: string, more = {}): Promise<string> =>
    (await api.delegate("coder", { task, ...more })).body.id;
  const trees = () => readdirSync(home).filter((name) => !name.includes("."));
  const branches = () =>
    git("branch", "--list", "errand/*", "--format", "%(refname:short)").split("\n").slice(0, -1);
  await api.agent("coder");
  return { ...setting, git, home, work, end, delegate, trees, branches };
}

const diffOf = (record: { artifacts: { artifactId: string; parts: { text?: string; raw?: string }[] }[] }) =>
  record.artifacts
    .filter(({ artifactId }) => artifactId === "diff")
    .flatMap(({ parts }) => parts.map(({ text, raw = "" }) => text ?? Buffer.from(raw, "base64").toString()))
    .join("");

test("each conversation has its own; what changed comes back, and what is uncommitted stays", async () => {
  const { dir, git, work, end, delegate, trees, branches } = await scene();
  await work();
  const first = await end(
    await delegate("echo three >> sub/a.txt; printf 'a\\0b' > b.bin; touch c.log; pwd", { context_id: "x" }),
  );
  const [name] = trees();
  expect(first.reply.parts).toEqual([{ text: join(dir, "state", "errand", "worktrees", String(name)) }]);
  expect(name).toMatch(/^[0-9a-f]{20}$/);
  expect(readFileSync(join(dir, "sub", "a.txt"), "utf8")).toBe("one\ntwo\n");
  // It can be applied, with its new and binary files.
  writeFileSync(join(dir, "c.log"), diffOf(first));
  git("apply", "c.log");
  expect(readFileSync(join(dir, "sub", "a.txt"), "utf8")).toBe("one\ntwo\nthree\n");
  expect(readFileSync(join(dir, "b.bin"))).toEqual(Buffer.from("a\0b"));
  expect(first.artifacts).toMatchObject([{ name: "changes.diff" }]);
  expect(first.artifacts[0].description).toContain(`the branch errand/${name}`);
  // Another conversation does not see it, and leaves nothing if it changes nothing.
  const other = await end(await delegate("cat sub/a.txt; ls -A; touch c.log", { context_id: "y" }));
  expect(other.reply.parts).toEqual([{ text: "one\ntwo\n.git\n.gitignore\nsub" }]);
  expect(other.artifacts).toEqual([]);
  expect(trees()).toEqual([name]);
  expect(branches()).toEqual([`errand/${name}`]);
  // The same conversation goes on with it. What it commits stays on the branch, and the folder goes.
  const second = await end(
    await delegate("git add . && git commit --quiet -m mine && git log --oneline | wc -l", {
      context_id: "x",
    }),
  );
  expect(second.reply.parts).toEqual([{ text: "2" }]);
  expect(diffOf(second)).toBe(diffOf(first));
  await until(() => trees().length === 0);
  expect(branches()).toEqual([`errand/${name}`]);
  // It is made again from the branch, which goes when its commits are elsewhere.
  const third = await end(await delegate("tail -n 1 sub/a.txt", { context_id: "x" }));
  expect([third.reply.parts, diffOf(third)]).toEqual([[{ text: "three" }], diffOf(first)]);
  git("checkout", "--quiet", "-f");
  rmSync(join(dir, "b.bin"));
  git("merge", "--quiet", `errand/${name}`);
  const fourth = await end(await delegate("cat sub/a.txt | wc -l", { context_id: "x" }));
  expect([fourth.reply.parts, fourth.artifacts]).toEqual([[{ text: "3" }], []]);
  await until(() => trees().length === 0 && branches().length === 0);
});

test("a commit that no branch has, and another repository in its place, stay", async () => {
  const { work, end, delegate, trees } = await scene();
  await work();
  await end(
    await delegate("git checkout --quiet --detach; git commit --quiet --allow-empty -m lost", {
      context_id: "x",
    }),
  );
  await end(
    await delegate("rm .git; git init --quiet; git add .; git commit --quiet -m own", { context_id: "y" }),
  );
  const last = await end(await delegate("git log --oneline --format=%s -1", { context_id: "x" }));
  expect(last.reply.parts).toEqual([{ text: "lost" }]);
  expect(trees()).toHaveLength(2);
});

test("what an agent or a user does with git loses nothing, and stops no other conversation", async () => {
  const { dir, git, home, work, end, delegate, trees, branches } = await scene();
  const { stderr } = await work();
  const run = async (context_id: string, ...script: string[]) =>
    end(await delegate(script.join("\n"), { context_id }));
  // Reviewed in the user's checkout, without a branch.
  const [reviewed] = [await run("reviewed", "git commit --quiet --allow-empty -m mine; git rev-parse HEAD")];
  git("checkout", "--quiet", "--detach", reviewed.reply.parts[0].text);
  await run("reviewed", "true");
  git("checkout", "--quiet", "main");
  expect(branches()).toHaveLength(1);
  // `git status` shows none of these.
  await run("skipped", "echo x > sub/a.txt; git update-index --skip-worktree sub/a.txt");
  await run(
    "merging",
    "git commit --quiet --allow-empty -m a; git checkout --quiet -b b HEAD~; git commit --quiet --allow-empty -m b",
    "git checkout --quiet -; git merge --quiet --no-commit --no-ff b",
  );
  await run("inner", "mkdir tmp.log; git worktree add --quiet tmp.log/inner; touch tmp.log/inner/mine");
  const sub =
    'git -c protocol.file.allow=always submodule --quiet add "$(git rev-parse --git-common-dir)" lib';
  await run(
    "submodule",
    sub,
    "git commit --quiet -m lib; cd lib; git checkout --quiet -b own",
    "git commit --quiet --allow-empty -m own; git checkout --quiet -",
  );
  expect(trees()).toHaveLength(4);
  // What is in the way is kept, and the conversation goes on, on its branch.
  await run(
    "broken",
    "echo 1 > keep.txt; git add . && git commit --quiet -m one; echo 2 > mine.txt; rm .git",
  );
  const mended = await run("broken", "cat keep.txt; ls");
  expect(mended.reply.parts).toEqual([{ text: "1\nkeep.txt\nsub" }]);
  const aside = readdirSync(home).filter((name) => name.includes(".kept-"));
  expect(aside.map((name) => readFileSync(join(home, name, "mine.txt"), "utf8"))).toEqual(["2\n"]);
  // A branch that is checked out elsewhere concerns one conversation.
  const commit = reviewed.reply.parts[0].text;
  git("checkout", "--quiet", git("branch", "--contains", commit, "--format", "%(refname:short)").trim());
  expect((await run("reviewed", "true")).error).toMatchObject({ code: "worktree_failed" });
  expect((await run("fresh", "echo on")).reply.parts).toEqual([{ text: "on" }]);
  git("checkout", "--quiet", "main");
  // The answer is worth more than the diff.
  const answered = await run("index", 'rm "$(git rev-parse --git-dir)/index"; echo ANSWER');
  expect([answered.state, answered.reply.parts]).toEqual(["completed", [{ text: "ANSWER" }]]);
  expect(stderr()).toContain("What changed in the worktree cannot be returned");
  // The settings of a repository in it name no program that the worker runs.
  await run(
    "hostile",
    "git init --quiet n; cd n; git commit --quiet --allow-empty -m x; git config core.fsmonitor 'touch ../PWNED; false'",
  );
  expect(trees().filter((name) => existsSync(join(home, name, "PWNED")))).toEqual([]);
  expect(existsSync(join(dir, "PWNED"))).toBe(false);
});

test("the diff can be applied whatever the settings say, and names what it leaves out", async () => {
  const { dir, git, work, end, delegate } = await scene();
  git("config", "diff.noprefix", "true");
  await work();
  const large = await end(await delegate("echo three >> sub/a.txt; head -c 1500000 /dev/urandom > film.bin"));
  writeFileSync(join(dir, "c.log"), diffOf(large));
  git("apply", "c.log");
  expect(readFileSync(join(dir, "sub", "a.txt"), "utf8")).toBe("one\ntwo\nthree\n");
  expect(large.artifacts[0].description).toContain("Binary files are too large to be returned: film.bin.");
});

test("while a question is open the worktree stays; of two workers, one has it at a time", async () => {
  const { api, work, end, delegate, trees } = await scene();
  await work();
  const script = '[ "$ERRAND_DECISION" ] && exec cat note.log; echo kept > note.log; echo Go?; exit 79';
  const asking = await delegate(script, { context_id: "x" });
  const { interrupt } = await end(asking);
  await work();
  await Promise.all([
    end(await delegate("true", { context_id: "x" })),
    end(await delegate("true", { context_id: "x" })),
  ]);
  expect(trees()).toHaveLength(1);
  await api.answer(asking, interrupt.id, { decision: "approve" });
  expect((await end(asking)).reply.parts).toEqual([{ text: "kept" }]);
  await until(() => trees().length === 0);
  // Each sees that nobody else is there.
  const alone = "mkdir busy.log && sleep 0.2 && rmdir busy.log && echo alone";
  const ids = await Promise.all([1, 2, 3, 4].map(() => delegate(alone, { context_id: "y" })));
  const all = await Promise.all(ids.map(end));
  expect(all.map(({ reply }) => reply.parts)).toEqual(all.map(() => [{ text: "alone" }]));
});

test("it is made although git fails once, because another process removed the last worktree meanwhile", async () => {
  const { dir, work, end, delegate, trees } = await scene();
  const bin = join(dir, "state", "bin");
  mkdirSync(bin, { recursive: true });
  const script = `#!/bin/sh
case "$*" in *"worktree add"*) [ -e ${bin}/failed ] || { touch ${bin}/failed; echo "fatal: could not open '.git/worktrees/x/gitdir' for writing: No such file or directory" >&2; exit 128; } ;; esac
PATH="\${PATH#*:}" exec git "$@"
`;
  writeFileSync(join(bin, "git"), script, { mode: 0o755 });
  await work({ PATH: `${bin}:${process.env.PATH}` });
  const ended = await end(await delegate("echo up; echo mine > d.txt"));
  expect(ended).toMatchObject({ state: "completed", reply: { parts: [{ text: "up" }] } });
  expect(existsSync(join(bin, "failed"))).toBe(true);
  expect(trees()).toHaveLength(1);
});

test("a killed worker's worktrees are removed by the next one if nothing in them is uncommitted", async () => {
  const { home, work, delegate, trees, git, dir } = await scene();
  const first = await work();
  await delegate("echo up; echo mine > d.txt; exec sleep 600", { context_id: "dirty" });
  await delegate("echo up; exec sleep 600", { context_id: "clean" });
  await until(() => trees().length === 2 && trees().some((name) => existsSync(join(home, name, "d.txt"))));
  first.child.kill("SIGKILL");
  await first.ended();
  // Half made, and gone: git knows both.
  git("worktree", "add", "--quiet", join(home, "0".repeat(20)));
  writeFileSync(join(dir, ".git", "worktrees", "0".repeat(20), "locked"), "initializing");
  git("worktree", "add", "--quiet", join(home, "1".repeat(20)));
  rmSync(join(home, "1".repeat(20)), { recursive: true });
  await work();
  expect(trees()).toHaveLength(1);
  expect(existsSync(join(home, String(trees()[0]), "d.txt"))).toBe(true);
  expect(git("worktree", "list").trim().split("\n")).toHaveLength(2);
});

test("it works in the same folder of the repository; without a commit or a repository, it does not start", async () => {
  const { url, work, end, delegate } = await scene("sub");
  await work();
  const ended = await end(await delegate("ls; git rev-parse --show-prefix"));
  expect(ended.reply.parts).toEqual([{ text: "a.txt\nsub/" }]);
  const empty = freshDir();
  const start = () =>
    errand(empty, ["work", "--agent", "coder", "--worktree", "--", "true"], {
      ERRAND_URL: url,
      ERRAND_TOKEN: OPERATOR,
    });
  const outside = start();
  expect(await outside.ended()).toBe(64);
  execFileSync("git", ["init", "--quiet"], { cwd: empty });
  const early = start();
  expect(await early.ended()).toBe(64);
  const what = "--worktree requires a folder of a git repository that has a commit and is not bare";
  expect(early.stderr()).toContain(`${what} (the repository has no commit yet).`);
  expect(outside.stderr()).toMatch(new RegExp(`${what} \\(fatal: .*\\)\\.`));
});
