/** Dials the targets of a backend in turn, for raw bytes: TCP and TLS edges, and modules that bridge protocols. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { Ends } from '../../lib/net/proxy-protocol.ts'
import { DialFault } from '../../model/dial.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import { dialCode, dialTarget } from './dial-target.ts'
import type { Target, Visit } from './target.ts'

interface Dialling {
  readonly targets: Iterable<Target>
  readonly visit: Visit
  readonly ends: Ends
  /** The error when there is no target, or none that is online. */
  readonly offline: VisitorErrorCode
}

/** The first target that can be dialled, as raw bytes; or why there is none. Never rejects. */
export async function dialFirst({
  targets,
  visit,
  ends,
  offline,
}: Dialling): Promise<{ readonly stream: ByteStream; readonly key: string } | VisitorErrorCode> {
  let code = offline
  for (const target of targets) {
    // a fixed response has no meaning where bytes are carried.
    if (target.kind === 'fixed') continue
    const stream = await dialTarget(target, visit, ends)
    if (!(stream instanceof DialFault)) return { stream, key: target.key }
    code = dialCode(stream) ?? code
  }
  return code
}
