/** The kinds of principals whose tool list shows a tool. */
export const CALLERS = ["agent", "caller", "operator"] as const;
export const CONTROLLERS = ["agent", "caller", "approver", "operator"] as const;
export const READERS = ["agent", "caller", "approver", "viewer", "operator"] as const;
export const WORKERS = ["agent", "operator"] as const;
