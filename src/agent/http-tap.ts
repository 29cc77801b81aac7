/**
 * Recognises requests and answers in what passes by, for people who watch; it changes nothing and looks only at how a
 * chunk begins. A head that begins within a chunk is missed, which is a fair price for costing nothing.
 */
import { type ByteStream, writeLent } from '../lib/bytes/byte-stream.ts'
import type { Figures, SeenRequest } from './figures.ts'

/** Longest line that is looked at, in bytes. */
export const LINE_BYTES = 2048

/** Longest path that is kept, in characters. */
const PATH_CHARACTERS = 200

/** What a visitor gets from the server when the service gives no answer. */
const BAD_GATEWAY = 502

/** A service that wants a PROXY header of version 1 gets it before the first request. */
const requestLine = /^(?:PROXY [^\r\n]{0,100}\r\n)?([A-Z]{3,16}) (\S+) HTTP\/1\.[01]\r\n/
const statusLine = /^HTTP\/1\.[01] (\d{3})/

export interface Tap {
  readonly figures: Figures
  /** The name of the tunnel that is watched. */
  readonly tunnel: string
  /** Milliseconds, for durations. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** A request began, or got its answer. */
  readonly onChange: () => void
}

/** `visitor` as it is, with an eye on both ways: requests come out of it, answers go into it. */
export function tapped(visitor: ByteStream, tap: Tap): ByteStream {
  let current: { readonly request: SeenRequest; readonly at: number } | undefined
  const request = (chunk: Buffer): void => {
    // Within a request whose answer is not there yet, a chunk is a part of its body.
    if (current || !isLetter(chunk[0])) return
    const seen = seenIn(chunk, tap)
    if (seen) current = { request: seen, at: tap.now() }
  }
  const answered = (status: number): void => {
    if (!current) return
    finish(current.request, { status, durationMs: tap.now() - current.at }, tap)
    current = undefined
  }
  const answer = (chunk: Buffer): void => {
    if (!current || chunk[0] !== LETTER_H) return
    const status = Number(statusLine.exec(chunk.toString('latin1', 0, 16))?.[1])
    // The final answer follows after one of these; a 101 is final.
    if (Number.isNaN(status) || (status < 200 && status !== 101)) return
    answered(status)
  }
  return {
    write(chunk) {
      answer(chunk)
      return visitor.write(chunk)
    },
    writeLent(chunk) {
      answer(chunk)
      return writeLent(visitor, chunk)
    },
    // The service is through, or gone: whoever still waits for an answer gets one from the server.
    end() {
      answered(BAD_GATEWAY)
      visitor.end()
    },
    reset() {
      answered(BAD_GATEWAY)
      visitor.reset()
    },
    attach(sink) {
      const { lent } = sink
      visitor.attach({
        data(chunk) {
          request(chunk)
          sink.data(chunk)
        },
        lent:
          lent &&
          ((chunk) => {
            request(chunk)
            lent(chunk)
          }),
        end: () => sink.end(),
        drain: () => sink.drain(),
        closed(error) {
          // The visitor left, so nobody is answered.
          current = undefined
          sink.closed(error)
        },
      })
    },
    pause: () => visitor.pause(),
    resume: () => visitor.resume(),
  }
}

/** Notes the request that `chunk` begins with as one that could not be passed on, `durationMs` after it came. */
export function noteUnserved(chunk: Buffer, durationMs: number, tap: Tap): void {
  const request = seenIn(chunk, tap)
  if (request) finish(request, { status: BAD_GATEWAY, durationMs }, tap)
}

function seenIn(chunk: Buffer, { figures, tunnel, clock, onChange }: Tap): SeenRequest | undefined {
  const [, method, path = ''] = requestLine.exec(chunk.toString('latin1', 0, LINE_BYTES)) ?? []
  if (method === undefined) return undefined
  const request = {
    tunnel,
    time: clock(),
    method,
    path: path.slice(0, PATH_CHARACTERS),
    status: undefined,
    durationMs: undefined,
  }
  figures.saw(request)
  onChange()
  return request
}

function finish(
  request: SeenRequest,
  { status, durationMs }: { status: number; durationMs: number },
  { figures, onChange }: Tap,
): void {
  request.status = status
  request.durationMs = durationMs
  figures.took(durationMs)
  onChange()
}

const LETTER_H = 0x48

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a
}
