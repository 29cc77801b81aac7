/** Reads a file that should be small: a huge or endless file, or a pipe without a writer, gives an error, not a hang. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** How long to wait for the next bytes of a pipe, in milliseconds. */
const PIPE_MS = 5000

/** How long to wait before trying a pipe again, in milliseconds. */
const RETRY_MS = 10

/** How much is read at once, in bytes. */
const CHUNK_BYTES = 16 * 1024

/** Without O_NONBLOCK, opening a pipe without a writer blocks for ever. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** The text of the file at `path`. Errors have a system code and the path; the code is EFBIG for over `maxBytes`. */
export function readSmallFile(path: string, maxBytes: number, { pipeMs = PIPE_MS } = {}): string {
  const file = openSync(path, OPEN_FLAGS)
  try {
    const kind = fstatSync(file)
    if (kind.isDirectory()) throw fault('EISDIR', path)
    const chunks: Buffer[] = []
    for (let total = 0; ; ) {
      const chunk = Buffer.alloc(CHUNK_BYTES)
      const count = readChunk(file, chunk, { path, pipeMs })
      if (count === 0) break
      total += count
      if (total > maxBytes) throw fault('EFBIG', path)
      chunks.push(chunk.subarray(0, count))
    }
    // A regular file may be empty, but an empty pipe means that nobody wrote to it.
    if (chunks.length === 0 && kind.isFIFO()) throw fault('ETIMEDOUT', path)
    return Buffer.concat(chunks).toString()
  } finally {
    closeSync(file)
  }
}

/** The same without blocking the event loop. Pipes are refused, since waiting for a writer could take long. */
export async function readSmallFileAsync(path: string, maxBytes: number): Promise<string> {
  const file = await open(path, OPEN_FLAGS)
  try {
    const kind = await file.stat()
    if (!kind.isFile()) throw fault(kind.isDirectory() ? 'EISDIR' : 'EINVAL', path)
    const bytes = Buffer.alloc(maxBytes + 1)
    for (let total = 0; ; ) {
      const { bytesRead } = await file.read(bytes, total, bytes.length - total)
      total += bytesRead
      if (total > maxBytes) throw fault('EFBIG', path)
      if (bytesRead === 0) return bytes.toString('utf8', 0, total)
    }
  } finally {
    await file.close()
  }
}

function readChunk(file: number, chunk: Buffer, { path, pipeMs }: { path: string; pipeMs: number }): number {
  const until = performance.now() + pipeMs
  for (;;) {
    try {
      return readSync(file, chunk)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      if (performance.now() >= until) throw fault('ETIMEDOUT', path)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
    }
  }
}

function fault(code: 'EISDIR' | 'EINVAL' | 'EFBIG' | 'ETIMEDOUT', path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}
