/** Dials one target for one visit, whatever protocol follows: HTTP/1.1, HTTP/2 or raw bytes. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { type Ends, proxyHeaderOf } from '../../lib/net/proxy-protocol.ts'
import { DialFault, type DialReason } from '../../model/dial.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { DialTarget, Visit } from './target.ts'

/** Opens a connection for `visit` that begins with the PROXY header its target wants. Never rejects. */
export async function dialTarget(target: DialTarget, visit: Visit, ends: Ends): Promise<ByteStream | DialFault> {
  const stream = await target.open(visit)
  if (!(stream instanceof DialFault) && target.proxyHeader !== 0) stream.write(proxyHeaderOf(target.proxyHeader, ends))
  return stream
}

const codes: Readonly<Record<DialReason, VisitorErrorCode | undefined>> = {
  offline: undefined,
  busy: 'BACKEND_BUSY',
  timeout: 'UPSTREAM_TIMEOUT',
  refused: 'UPSTREAM_UNREACHABLE',
  unreachable: 'NODE_UNREACHABLE',
}

/**
 * The error for the visitor when no other target can be dialled either. Undefined for a target that is offline: a busy
 * or unreachable one, tried before or after it, explains more.
 */
export function dialCode({ reason }: DialFault): VisitorErrorCode | undefined {
  return codes[reason]
}
