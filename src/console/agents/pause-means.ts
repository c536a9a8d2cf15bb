/** What it means to pause an agent. */
export const PAUSE_MEANS =
  "Its workers get nothing new, and what is delegated to it waits until you resume it. Work in progress goes on.";
