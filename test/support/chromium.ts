/** Where Debian and Ubuntu put Chromium; undefined if it is not installed. */
import { existsSync } from "node:fs";

export const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);
