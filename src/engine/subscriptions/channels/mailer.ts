/**
 * Sends mails by the operator's mail server (`ERRAND_SMTP_URL`). Limit: one server for all. The operator chose it, so the
 * egress guard does not check it.
 */
import type { Transporter } from "nodemailer";
import * as z from "zod";
import type { Notification } from "../../../schema/subscription.ts";
import { linesOf } from "../lines.ts";
import type { Sent } from "./outcome.ts";

export interface MailSettings {
  /** `smtp://` or `smtps://`, with user and password. */
  readonly url: string;
  /** The sender. */
  readonly from: string;
  /** Domains and addresses that get mail, `*` for all. Absent: see {@link Mailer.maySend}. */
  readonly to?: readonly string[] | undefined;
}

const TIMEOUT_MS = 10_000;
/** Replies to an address that say that there is no such mailbox, so no later try helps. */
const NO_MAILBOX = [550, 551, 553];
/** The enhanced codes (RFC 3463) that say so: the address, or a mailbox that is disabled. Others are about rights or policy. */
const OF_MAILBOX = /^5\.(?:1\.\d+|2\.1)$/;

export class Mailer {
  readonly #settings: MailSettings | null;
  #transport: Promise<Transporter> | null = null;

  constructor(settings: MailSettings | null) {
    this.#settings = settings;
  }

  get isSet(): boolean {
    return this.#settings !== null;
  }

  /**
   * Whether a subscription of this owner may send mail to this address. Nobody proves that an address is theirs, so the operator
   * says where mail may go (`ERRAND_MAIL_TO`). By default: to the sender's own domain, and for the operator's own subscriptions
   * anywhere.
   */
  maySend(owner: string, to: string): boolean {
    if (this.#settings === null) return false;
    const { from, to: allowed } = this.#settings;
    if (allowed === undefined) return owner === "operator" || domainOf(to) === domainOf(from);
    const [address, domain] = [to.toLowerCase(), domainOf(to)];
    return allowed.some((one) => one === "*" || [address, domain].includes(one.toLowerCase()));
  }

  async send(owner: string, to: string, { id, title, text, link, no_link }: Notification): Promise<Sent> {
    const settings = this.#settings;
    if (settings === null) return { kind: "failed", problem: "The broker has no mail server.", gone: false };
    if (!this.maySend(owner, to))
      return {
        kind: "failed",
        problem: "The operator allows no mail to this address (ERRAND_MAIL_TO).",
        gone: true,
      };
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
      // The other time limits do not stop a server that answers slowly.
      await Promise.race([mail, late(TIMEOUT_MS)]);
      return { kind: "delivered" };
    } catch (error) {
      return failureOf(toDetails(error));
    }
  }

  async close(): Promise<void> {
    const transport = await this.#transport?.catch(() => null);
    transport?.close();
  }
}

/** Of an address, also of one like `Errand <errand@example.com>`. */
const domainOf = (address: string): string =>
  address
    .slice(address.lastIndexOf("@") + 1)
    .replace(/>\s*$/, "")
    .toLowerCase();

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

const detailsSchema = z.object({
  responseCode: z.int().optional().catch(undefined),
  response: z.string().optional().catch(undefined),
  command: z.string().optional().catch(undefined),
  code: z.string().optional().catch(undefined),
});
type Details = z.infer<typeof detailsSchema>;

const toDetails = (error: unknown): Details =>
  error instanceof Error ? detailsSchema.parse({ ...error }) : {};

/** Only a refusal of the address is about the mailbox, and one of the text only about this mail. */
function failureOf({ responseCode, response = "", command, code = "no answer" }: Details): Sent {
  const [, enhanced] = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response) ?? [];
  const status = [responseCode, enhanced].filter((one) => one !== undefined).join(" ");
  const isOfMailbox = enhanced === undefined || OF_MAILBOX.test(enhanced);
  const isFinal = responseCode !== undefined && responseCode >= 500;
  return {
    kind: "failed",
    problem: `The mail server did not take it: ${status === "" ? code : `status ${status}`}.`,
    gone: command === "RCPT TO" && isOfMailbox && isFinal && NO_MAILBOX.includes(responseCode),
    refused: command === "DATA" && isFinal,
  };
}

function late(ms: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(Object.assign(new Error("too slow"), { code: "ETIMEDOUT" })), ms).unref();
  });
}
