/** Lets a watch see what passes between a visitor and a service; what it sees passes as it would without. */
import { type ByteStream, writeLent } from '../../lib/bytes/byte-stream.ts'
import type { ConnectionWatch } from './connection-watch.ts'

/** Wraps `visitor`: requests come out of it, responses go into it. */
export function watchedStream(visitor: ByteStream, watch: ConnectionWatch): ByteStream {
  return {
    write(chunk) {
      watch.fromService(chunk)
      return visitor.write(chunk)
    },
    writeLent(chunk) {
      watch.fromService(chunk)
      return writeLent(visitor, chunk)
    },
    // The service has ended or failed, so the server answers a request that is still open.
    end() {
      watch.serviceEnded()
      visitor.end()
    },
    reset() {
      watch.serviceEnded()
      visitor.reset()
    },
    attach(sink) {
      const { lent } = sink
      visitor.attach({
        data(chunk) {
          watch.fromVisitor(chunk)
          sink.data(chunk)
        },
        lent:
          lent &&
          ((chunk) => {
            watch.fromVisitor(chunk)
            lent(chunk)
          }),
        end: () => sink.end(),
        drain: () => sink.drain(),
        closed(error) {
          watch.closed()
          sink.closed(error)
        },
      })
    },
    pause: () => visitor.pause(),
    resume: () => visitor.resume(),
  }
}
