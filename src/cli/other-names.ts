/**
 * Commands under the names that other programs give them (kubectl, gh, docker, temporal, celery, rq and queues), for
 * `Did you mean …?`.
 */
import { distance } from "../util/similar.ts";

type Names = Readonly<Record<string, string>>;

/** Each word stands for `meant`. */
const named = (meant: string, words: string): Names =>
  Object.fromEntries(words.split(" ").map((word) => [word, meant]));

const NAMES: Readonly<Record<string, Names>> = {
  errand: {
    ...named("get", "show describe info inspect view result output explain fetch cat"),
    ...named("get <id> --wait", "wait await join"),
    ...named("get <id> --artifacts <folder>", "download artifacts artifact cp"),
    ...named(
      "list",
      "ls ps jobs job tasks task delegations delegation workflows workflow runs search find query",
    ),
    ...named("list --tree", "tree graph children"),
    ...named("list --state failed", "failed failures dlq dead"),
    ...named("list --state working", "active running"),
    ...named("list --state submitted", "queued waiting"),
    ...named("list --state waits", "blocked parked"),
    ...named("logs", "log history trace timeline activity"),
    ...named("watch", "tail follow events attach subscribe listen stream"),
    ...named("results", "done finished completed"),
    ...named("inbox", "question questions pending todo approvals"),
    ...named("delegate", "run send submit enqueue ask create new add execute exec call push assign dispatch"),
    ...named("delegate --batch <path>", "batch"),
    ...named("delegate --delay <duration>", "later"),
    ...named("schedule create", "cron beat recurring every crontab"),
    ...named("schedule list", "schedules crons"),
    ...named("rules create", "rule auto-approve autoapprove always standing policy"),
    ...named("rules list", "policies allowlist whitelist"),
    ...named(
      "notify create",
      "subscription alert remind reminder ntfy slack email mail phone webhook webhooks",
    ),
    ...named("notify list", "notifications notification subscriptions alerts channels"),
    ...named("answers", "answered approved decided decisions"),
    ...named("answer", "reply respond resolve"),
    ...named("approve", "accept allow confirm permit grant ok yes"),
    ...named("deny", "reject refuse decline disallow block no"),
    ...named("message", "tell say comment note signal chat msg follow-up followup write"),
    ...named("cancel", "kill stop abort terminate close purge empty flush clear drop discard interrupt"),
    ...named("redrive", "retry rerun requeue resubmit restart replay reset redo repeat again reopen resend"),
    ...named("delete", "rm remove erase del destroy prune clean cleanup"),
    ...named("files list", "file uploads attachments"),
    ...named("serve", "start server up setup init install broker gateway daemon"),
    ...named("work", "worker poll consume claim lease pull take receive worker-pool dequeue"),
    ...named("relay", "proxy bridge forward"),
    ...named("agent list", "agents presence queues queue"),
    ...named("agent workers", "workers"),
    ...named("agent put", "put register apply edit update set patch replace configure"),
    ...named("agent pause", "pause suspend cordon drain disable"),
    ...named("agent resume", "resume unpause uncordon enable continue"),
    ...named("agent delete", "unregister deregister"),
    ...named("token list", "tokens keys users people"),
    ...named("token create", "key secret apikey"),
    ...named("token revoke", "revoke"),
    ...named("invite", "share user adduser useradd"),
    ...named("sessions link", "login signin link auth console ui web open browse browser"),
    ...named("sessions revoke", "logout signout"),
    ...named("sessions list", "session"),
    ...named("status", "whoami me who identity cluster-info overview summary alarms"),
    ...named("top", "monitor dashboard flower htop"),
    ...named("stats", "metrics stat usage count counts report"),
    ...named("audit", "audit-log auditlog"),
    ...named("backup", "export save dump snapshot"),
    ...named("restore", "import load recover"),
    ...named("migrate", "move reshard"),
    ...named("doctor", "check health healthcheck ping ready config env settings diagnose debug verify test"),
    ...named("completion", "completions autocomplete"),
    ...named("--help", "commands man docs options"),
    ...named("--version", "version"),
  },
  "errand agent": {
    ...named("get", "show describe info inspect view status"),
    ...named("list", "ls ps"),
    ...named("put", "add create new set update edit apply patch replace register configure config"),
    ...named("workers", "worker pollers"),
    ...named("pause", "stop suspend cordon drain disable"),
    ...named("resume", "start unpause uncordon enable continue"),
    ...named("delete", "rm remove del destroy unregister deregister"),
  },
  "errand schedule": {
    ...named("create", "add new make register"),
    ...named("change", "set put edit update patch modify configure reschedule"),
    ...named("list", "ls ps"),
    ...named("get", "show describe info inspect view status"),
    ...named("runs", "history log logs results executions"),
    ...named("run", "trigger start now execute exec"),
    ...named("pause", "stop suspend disable hold"),
    ...named("resume", "unpause enable continue unblock"),
    ...named("delete", "rm remove del destroy cancel"),
  },
  "errand rules": {
    ...named("create", "add new make put approve allow"),
    ...named("create --deny", "deny block"),
    ...named("list", "ls ps"),
    ...named("get", "show describe info inspect view status"),
    ...named("revoke", "rm remove delete del destroy cancel stop end disable"),
  },
  "errand notify": {
    ...named("create", "add new make put on subscribe enable"),
    ...named("list", "ls ps channels"),
    ...named("get", "show describe info inspect view status"),
    ...named("test", "send try check ping"),
    ...named("resume", "retry unpause continue again"),
    ...named("delete", "rm remove del destroy off stop unsubscribe disable"),
  },
  "errand token": {
    ...named("list", "ls show get"),
    ...named("create", "add new issue generate mint grant put"),
    ...named("revoke", "rm delete remove del destroy disable"),
  },
  "errand files": {
    ...named("list", "ls show get ps"),
    ...named("delete", "rm remove del destroy prune"),
  },
  "errand sessions": {
    ...named("list", "ls show get ps"),
    ...named("revoke", "rm delete remove del kill close end logout"),
    ...named("link", "create login new add open signin"),
  },
};

/** Each group of commands with the other names and what they mean. */
export const otherNames = Object.entries(NAMES).flatMap(([path, names]) =>
  Object.entries(names).map(([name, meant]) => ({ path, name, meant })),
);

/** `Did you mean 'errand get'?`, or nothing. */
export function byOtherName(path: string, name: string): string {
  const meant = meaningOf(path, name);
  return meant === undefined ? "" : `Did you mean '${path} ${meant}'?`;
}

function meaningOf(path: string, name: string): string | undefined {
  const names = new Map(Object.entries(NAMES[path] ?? {}));
  // A short word has too many others beside it.
  const isClose = (known: string) => name.length >= SHORTEST_GUESS && hasFewMistakes(name, known);
  return names.get(name) ?? names.get([...names.keys()].find(isClose) ?? "");
}

const SHORTEST_GUESS = 4;
/** From this length on, a word may have two mistakes. */
const LONG = 6;

const hasFewMistakes = (word: string, known: string): boolean =>
  distance(word, known) <= (word.length < LONG ? 1 : 2);

/** Stricter than commander, which takes `setup` for `status`. */
export const isSpelledLike = (word: string, known: string): boolean =>
  known.startsWith(word) || hasFewMistakes(word, known);

/** Whether a word has a meaning by itself, however it is spelled. */
export const isOtherName = (path: string, name: string): boolean => Object.hasOwn(NAMES[path] ?? {}, name);
