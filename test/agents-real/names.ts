/** The rows of the matrix, in the order in which they are run and shown. */
export const CELL_NAMES = [
  ...(["answer", "approved", "denied", "edited", "held", "parked", "killed", "continued"] as const),
  ...(["cancel", "files", "followed", "limit", "signedOut", "usage", "delegates"] as const),
] as const;
export type CellName = (typeof CELL_NAMES)[number];
