/** Commands under the names that other programs give them, for `Did you mean …?`. */

const LIST = { ls: "list" } as const;
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  errand: {
    ...{ show: "get", describe: "get", info: "get", inspect: "get", wait: "get <id> --wait" },
    ...{ ls: "list", ps: "list", jobs: "list", tasks: "list", tree: "list --tree", history: "logs" },
    ...{ log: "logs", tail: "watch", follow: "watch", events: "watch", questions: "inbox" },
    ...{ run: "delegate", send: "delegate", submit: "delegate", enqueue: "delegate", ask: "delegate" },
    ...{ reply: "answer", respond: "answer", accept: "approve", reject: "deny", refuse: "deny" },
    ...{ kill: "cancel", stop: "cancel", abort: "cancel", retry: "redrive", rerun: "redrive" },
    ...{ rm: "delete", remove: "delete", erase: "delete", start: "serve", server: "serve", up: "serve" },
    ...{ worker: "work", poll: "work", agents: "agent list", tokens: "token list", login: "sessions link" },
    ...{ check: "doctor", metrics: "stats", share: "invite", user: "invite", export: "backup" },
    ...{ import: "restore", version: "--version" },
  },
  "errand agent": {
    ...LIST,
    ...{ show: "get", describe: "get", add: "put", create: "put", new: "put", set: "put", update: "put" },
    ...{ edit: "put", rm: "delete", remove: "delete", stop: "pause", start: "resume", unpause: "resume" },
  },
  "errand token": { ...LIST, add: "create", new: "create", rm: "revoke", delete: "revoke", remove: "revoke" },
  "errand sessions": { ...LIST, rm: "revoke", delete: "revoke", create: "link", login: "link" },
};

/** Each group of commands with the other names and what they mean. */
export const otherNames = Object.entries(NAMES).flatMap(([path, names]) =>
  Object.entries(names).map(([name, meant]) => ({ path, name, meant })),
);

/** `Did you mean 'errand get'?`, or nothing. */
export function byOtherName(path: string, name: string): string {
  const meant = new Map(Object.entries(NAMES[path] ?? {})).get(name);
  return meant === undefined ? "" : `Did you mean '${path} ${meant}'?`;
}
