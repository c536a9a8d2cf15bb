/** What the frame loads to show one delegation. */
import { adopt } from "../app/adopt.ts";
import { styles } from "../styles/delegation.css";

adopt(styles);

export { DelegationPane } from "./delegation.tsx";
export { PaneEdge } from "./pane-edge.tsx";
