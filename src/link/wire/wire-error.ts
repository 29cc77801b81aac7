/** Errors of the wire: one type with a stable code, and the protocol's numbers for some of them. */

/** Codes that RST and GOAWAY carry. */
export const wireCodes = {
  no_error: 0x00,
  protocol_error: 0x01,
  internal_error: 0x02,
  flow_control_error: 0x03,
  stream_closed: 0x04,
  stream_refused: 0x05,
  stream_cancelled: 0x06,
  stream_reset: 0x07,
  frame_size_error: 0x08,
  accept_queue_full: 0x09,
  enhance_your_calm: 0x0a,
  remote_gone_away: 0x0b,
  streams_exhausted: 0x0c,
  write_timeout: 0x0d,
  session_closed: 0x0e,
  peer_eof: 0x0f,
  unknown: 0xff,
} as const

export type WireCode = keyof typeof wireCodes

/** Our own codes, which no frame carries. */
type LocalCode = 'too_many_streams' | 'message_invalid' | 'message_too_large' | 'timed_out' | 'dead_peer'

type WireErrorCode = WireCode | LocalCode

/** What caused it: this end, the peer, or the connection. */
export type Side = 'us' | 'peer' | 'connection'

export class WireError extends Error {
  readonly code: WireErrorCode
  readonly side: Side

  constructor(code: WireErrorCode, side: Side, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'WireError'
    this.code = code
    this.side = side
  }
}

/** The name of a code that a peer sent; peers spell "unknown" in more than one way. */
export function wireCodeOf(value: number): WireCode {
  return names.get(value) ?? 'unknown'
}

const names = new Map<number, WireCode>(
  Object.entries(wireCodes).map(([name, value]) => [value, name as WireCode]), // the keys are the type
)
