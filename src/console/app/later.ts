/** The parts that the first view does not need, in one file that is loaded right after it. */
import { answerIssues } from "../../schema/answer-rules.ts";
import { setRules } from "../needs/refusal.ts";
import { watchPushes } from "../push/stored.ts";
import { styles } from "../styles/forms.css";
import { adopt } from "./adopt.ts";
import { followShortLinks } from "./short-links.ts";

adopt(styles);
setRules(answerIssues);
watchPushes();
followShortLinks();

export { Inbox } from "../inbox/inbox.tsx";
export { watchAnswers } from "../needs/answers.ts";
export { watchDrafts } from "../needs/drafts.ts";
export { listenForKeys } from "../needs/question-keys.ts";
export { watchUnsent } from "../needs/unsent.ts";
export { openLink } from "../session/link.ts";
export { LinkQuestion } from "../session/link-question.tsx";
export { SignIn } from "../session/sign-in.tsx";
export { Account } from "./account.tsx";
export { announceNeeds } from "./announce.ts";
export { guardClicks } from "./click-guard.ts";
export { Help } from "./help.tsx";
export { holdTypedAhead } from "./typed-ahead.ts";
