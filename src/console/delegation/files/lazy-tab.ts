/** The files of a delegation are loaded when they are first shown, or soon after the page. */
import { lazyFrom } from "../../app/lazy-from.tsx";

export const loadFiles = () => import("./files-tab.tsx");
export const FilesTab = lazyFrom(loadFiles, ({ FilesTab: loaded }) => loaded);
