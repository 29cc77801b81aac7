/** Reads a small file without holding up anybody: a huge file, a folder or a pipe gives an error. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** The text of the file at `path`. Errors have a code of the system: EFBIG for more than `maxBytes`, EINVAL for no file. */
export async function readFileWithin(path: string, maxBytes: number): Promise<string> {
  // Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const kind = await file.stat()
    if (!kind.isFile()) throw fault('EINVAL', path)
    const bytes = Buffer.alloc(maxBytes + 1)
    let total = 0
    for (;;) {
      const { bytesRead } = await file.read(bytes, total, bytes.length - total)
      total += bytesRead
      if (total > maxBytes) throw fault('EFBIG', path)
      if (bytesRead === 0) return bytes.toString('utf8', 0, total)
    }
  } finally {
    await file.close()
  }
}

function fault(code: 'EFBIG' | 'EINVAL', path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}
