/** What must hold after workers were killed while people approved: see {@link check}. */

export interface Seen {
  readonly id: string;
  readonly tag: string;
  readonly state: string;
  readonly answer: string;
  /** The types of its events that end it. */
  readonly ends: number;
  /** Its questions in order: the texts, and how each was answered. */
  readonly questions: readonly { readonly text: string; readonly decision: string | undefined }[];
  /** How many answers were used. */
  readonly used: number;
  /** How often the call ran. */
  readonly ran: number;
}

const MAY_HAVE_RUN = "may already have run";

/**
 * Each delegation ends once, completed, and says what the last answer decided. No approval is handed over twice: the call ran at most
 * as often as approvals were used. A question after an approved one says that the call may have run; a first one does not.
 */
export function check(seen: readonly Seen[]): string[] {
  return seen.flatMap(({ id, tag, state, answer, ends, questions, used, ran }) => {
    const found: string[] = [];
    const say = (what: string) => found.push(`${id} ${tag}: ${what}`);
    const approved = questions.filter(({ decision }) => decision === "approve").length;
    if (state !== "completed" || ends !== 1) say(`${state}, with ${ends} final events`);
    if (ran > used) say(`the call ran ${ran} times, but ${used} answers were used`);
    if (ran > approved) say(`the call ran ${ran} times, but ${approved} questions were approved`);
    if (answer === `ran ${tag}` ? ran === 0 : answer !== `denied ${tag}`)
      say(`answered '${answer}', ran ${ran} times`);
    let mayHaveRun = false;
    for (const [at, { text, decision }] of questions.entries()) {
      if (text.includes(MAY_HAVE_RUN) !== mayHaveRun)
        say(`question ${at + 1} ${mayHaveRun ? "hides" : "says"} that the call may have run`);
      if (decision === undefined) say(`question ${at + 1} has no answer`);
      mayHaveRun ||= decision === "approve";
    }
    return found;
  });
}
