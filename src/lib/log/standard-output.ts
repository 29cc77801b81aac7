/** Standard output and standard error as line ports: writing to them never blocks the event loop and never throws. */
import { fstatSync, write, writeSync } from 'node:fs'
import type { LinePort } from './line-sink.ts'

/** The parts of `process.stdout` and `process.stderr` that are used here. */
interface StandardStream {
  readonly fd: number
  readonly isTTY?: boolean
  readonly writableLength: number
  on(event: 'error', heard: () => void): unknown
  write(text: string, done: (error?: Error | null) => void): boolean
}

/** Opens stdout or stderr; other code may go on writing to the stream. */
export function standardPort(stream: StandardStream): LinePort {
  // Each write reports its own error; without this listener the error would end the process as well.
  stream.on('error', () => {})
  dontBlock(stream)
  if (stream.isTTY === true) return { ...streamPort(stream), isTTY: true }
  return isFile(stream.fd) ? filePort(stream.fd) : { ...streamPort(stream), isTTY: false }
}

/** Undoes that Node writes to terminals synchronously: one paused with Ctrl+S or hanging would block the event loop. */
export function dontBlock(stream: object): void {
  const { _handle: handle } = stream as { _handle?: { setBlocking?: (isBlocking: boolean) => number } }
  handle?.setBlocking?.(false)
}

/** Pipes, sockets and terminals: libuv writes what fits and waits for the rest. */
function streamPort(stream: StandardStream): Omit<LinePort, 'isTTY'> {
  return {
    write: (text, done) => void stream.write(text, (error) => done(error)),
    writeLast(text, limitMs) {
      // Part of a line may still be queued in the stream; text written past it would end up in the middle of that line.
      if (stream.writableLength === 0) writeAll(stream.fd, text, limitMs)
    },
  }
}

/** Files: Node's own streams write to them synchronously, so a slow disk would block the event loop. */
function filePort(fd: number): LinePort {
  const writeFrom = (bytes: Buffer, done: Parameters<LinePort['write']>[1]): void =>
    write(fd, bytes, (error, written) => {
      const rest = error ? bytes : bytes.subarray(written)
      if (error) done(error, rest.toString())
      else if (rest.length > 0) writeFrom(rest, done)
      else done()
    })
  return {
    isTTY: false,
    write: (text, done) => writeFrom(Buffer.from(text), done),
    writeLast: (text, limitMs) => writeAll(fd, text, limitMs),
  }
}

/** Whether to write to `fd` as to a file; this includes devices such as `/dev/null`. */
function isFile(fd: number): boolean {
  const kind = fstatSync(fd)
  return kind.isFile() || kind.isCharacterDevice()
}

/** How long to wait before trying a full pipe again, in milliseconds. */
const FULL_MS = 5

function writeAll(fd: number, text: string, limitMs: number): void {
  const until = performance.now() + limitMs
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EAGAIN' || performance.now() > until) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_MS)
    }
  }
}
