/** The kinds of heavy work that one principal sends beside another (`bench/children/heavy.ts`). */
export const HEAVY = ["reads", "unread", "submits", "cascades", "polls", "bulk"] as const;
export type Heavy = (typeof HEAVY)[number];
