/** The limits of the SSH gateway; tests may make them small. */
import { type ListenerLimits, listenerLimits } from '../tunnel/tunnel-limits.ts'

export interface SshLimits extends ListenerLimits {
  /** After this many failed logins a connection ends. */
  readonly tries: number
  /** How often a silent client is sent a keep-alive, in milliseconds. */
  readonly keepAliveMs: number
  /** How many keep-alives may go unanswered. */
  readonly missedKeepAlives: number
  /** How long a client that has logged in may take to send its command and its forward, in milliseconds. */
  readonly requestMs: number
  /** How long the answer to a forward waits for the command, in milliseconds: some clients send it only after the answer. */
  readonly forwardMs: number
  /** How long a client may take to connect to its service, in milliseconds. */
  readonly dialMs: number
  /** The most forwards of one connection. */
  readonly forwards: number
  /** The most terminals that one connection may open in all; the first one with a request gives the command. */
  readonly terminals: number
  /** The most visitor connections at a time over one SSH connection. */
  readonly channels: number
}

export const sshLimits: SshLimits = {
  ...listenerLimits,
  authenticationMs: 30_000,
  tries: 6,
  keepAliveMs: 15_000,
  missedKeepAlives: 3,
  requestMs: 10_000,
  forwardMs: 1000,
  dialMs: 10_000,
  forwards: 100,
  terminals: 32,
  channels: 4096,
}
