/** What the SSH gateway lets happen to it; every bound has its unit, and tests may make them small. */
import { type DoorLimits, doorLimits } from '../tunnel/limits.ts'

export interface SshLimits extends DoorLimits {
  /** Authentications that may fail on one connection. */
  readonly tries: number
  /** How often a silent client is asked for a sign of life, in milliseconds. */
  readonly keepAliveMs: number
  /** How many of these may go unanswered. */
  readonly missedKeepAlives: number
  /** How long a client that has logged in may take to send its command and its forward, in milliseconds. */
  readonly requestMs: number
  /** How long a client may take to connect to its service, in milliseconds. */
  readonly dialMs: number
  /** Forwards of one connection. */
  readonly forwards: number
  /** Terminals that one connection may open in all; the first that asks for something has the command. */
  readonly terminals: number
  /** Connections of visitors over one SSH connection. */
  readonly channels: number
}

export const sshLimits: SshLimits = {
  ...doorLimits,
  authenticationMs: 30_000,
  tries: 6,
  keepAliveMs: 15_000,
  missedKeepAlives: 3,
  requestMs: 10_000,
  dialMs: 10_000,
  forwards: 100,
  terminals: 32,
  channels: 4096,
}
