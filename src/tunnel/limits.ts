/** What the door lets happen to it; every bound has its unit, and tests may make them small. */

export interface DoorLimits {
  /** From connect to authenticated, TLS handshake included, in milliseconds. */
  readonly authenticationMs: number
  /** Connections that have not proved yet who they are. */
  readonly unproven: number
  /** The same from one address. */
  readonly unprovenPerIp: number
  /** Failed authentications from one address in a minute; further ones are answered late and logged by number. */
  readonly failuresPerMinute: number
  /** How long such a refusal is held back, in milliseconds: an agent that tries a wrong token in a loop is slowed. */
  readonly lateRefusalMs: number
  /** How long a refused agent has to read why, in milliseconds. */
  readonly refusalMs: number
  /** The least that an agent may want between signs of life, in milliseconds. */
  readonly leastHeartbeatMs: number
  /** How long who holds an address may be silent when somebody else asks for it, in milliseconds. */
  readonly signOfLifeMs: number
  /** How long a command may go unanswered, in milliseconds (D44). */
  readonly commandMs: number
}

export const doorLimits: DoorLimits = {
  authenticationMs: 10_000,
  unproven: 4096,
  unprovenPerIp: 256,
  failuresPerMinute: 60,
  lateRefusalMs: 2000,
  refusalMs: 1000,
  leastHeartbeatMs: 1000,
  signOfLifeMs: 2000,
  commandMs: 10_000,
}
