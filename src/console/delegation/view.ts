/** What the frame loads to show one delegation. */
import { adopt } from "../app/adopt.ts";
import { styles } from "../styles/delegation.css";
import { styles as headStyles } from "../ui/page-head.css";

adopt(headStyles, styles);

export { DelegationPane } from "./delegation.tsx";
export { PaneEdge } from "./pane-edge.tsx";
