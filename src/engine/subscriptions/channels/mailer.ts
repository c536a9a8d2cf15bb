/**
 * Sends mails by the operator's mail server (`ERRAND_SMTP_URL`). Limit: one server for all; it is the operator's, so the
 * egress guard does not ask for it.
 */
import type { Transporter } from "nodemailer";
import type { Notification } from "../../../schema/subscription.ts";
import { linesOf } from "../lines.ts";
import type { Sent } from "./outcome.ts";

export interface MailSettings {
  /** `smtp://` or `smtps://`, with user and password. */
  readonly url: string;
  /** The sender. */
  readonly from: string;
}

const TIMEOUT_MS = 10_000;
/** Replies of a server that no later try changes: there is no such mailbox. */
const NO_MAILBOX = [550, 551, 553];

export class Mailer {
  readonly #settings: MailSettings | null;
  #transport: Promise<Transporter> | null = null;

  constructor(settings: MailSettings | null) {
    this.#settings = settings;
  }

  get isSet(): boolean {
    return this.#settings !== null;
  }

  async send(to: string, { id, title, text, link, no_link }: Notification): Promise<Sent> {
    const settings = this.#settings;
    if (settings === null) return { kind: "failed", problem: "The broker has no mail server.", gone: false };
    try {
      this.#transport ??= connect(settings).catch((error: unknown) => {
        this.#transport = null;
        throw error;
      });
      const transport = await this.#transport;
      const mail = transport.sendMail({
        from: settings.from,
        to,
        subject: title,
        text: `${linesOf([title, text, link ?? no_link ?? ""], "\n\n")}\n`,
        messageId: `<${id}@errand>`,
        headers: { "Auto-Submitted": "auto-generated" },
        disableFileAccess: true,
        disableUrlAccess: true,
      });
      // A server that answers, but slowly, keeps every other limit.
      await Promise.race([mail, late(TIMEOUT_MS)]);
      return { kind: "delivered" };
    } catch (error) {
      const { responseCode, code } = toDetails(error);
      const status = responseCode === undefined ? (code ?? "no answer") : `status ${responseCode}`;
      const gone = responseCode !== undefined && NO_MAILBOX.includes(responseCode);
      return { kind: "failed", problem: `The mail server did not take it: ${status}.`, gone };
    }
  }

  async close(): Promise<void> {
    const transport = await this.#transport?.catch(() => null);
    transport?.close();
  }
}

/** Loaded when the first mail is sent: most brokers send none. */
async function connect({ url }: MailSettings): Promise<Transporter> {
  const { createTransport } = await import("nodemailer");
  return createTransport({
    url,
    pool: true,
    maxConnections: 2,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
}

function toDetails(error: unknown): { responseCode?: number; code?: string } {
  if (!(error instanceof Error)) return {};
  return {
    ...("responseCode" in error &&
      typeof error.responseCode === "number" && { responseCode: error.responseCode }),
    ...("code" in error && typeof error.code === "string" && { code: error.code }),
  };
}

function late(ms: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(Object.assign(new Error("too slow"), { code: "ETIMEDOUT" })), ms).unref();
  });
}
