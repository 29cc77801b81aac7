/** Where releases come from: a folder or a web address that holds `releases.json` and the archives it names. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** How long the download of one file may take, in milliseconds. */
const DOWNLOAD_MS = 300_000

export interface ReleaseSource {
  /** Reads a whole file; rejects when it is larger than `maxBytes`. */
  read(name: string, maxBytes: number, options?: { timeoutMs?: number }): Promise<Buffer>
}

export function releaseSource(source: string): ReleaseSource {
  if (/^https?:\/\//.test(source)) return webSource(source)
  return folderSource(source.startsWith('file://') ? fileURLToPath(source) : source)
}

function folderSource(folder: string): ReleaseSource {
  return {
    async read(name, maxBytes) {
      const file = await open(join(folder, plain(name)), 'r')
      try {
        const { size } = await file.stat()
        if (size > maxBytes) throw tooLarge(name, maxBytes)
        return await file.readFile()
      } finally {
        await file.close()
      }
    },
  }
}

function webSource(address: string): ReleaseSource {
  const base = address.endsWith('/') ? address : `${address}/`
  return {
    async read(name, maxBytes, { timeoutMs = DOWNLOAD_MS } = {}) {
      const response = await fetch(new URL(plain(name), base), { signal: AbortSignal.timeout(timeoutMs) })
      if (!response.ok || !response.body) throw new Error(`${name}: HTTP ${response.status}`)
      const chunks: Uint8Array[] = []
      let bytes = 0
      for await (const chunk of response.body) {
        bytes += chunk.length
        // Counted while it arrives, since a Content-Length header proves nothing.
        if (bytes > maxBytes) throw tooLarge(name, maxBytes)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks, bytes)
    },
  }
}

/** Refuses a name that could lead out of the folder. */
function plain(name: string): string {
  if (!/^[A-Za-z0-9][\w.+-]{0,127}$/.test(name)) throw new Error('a release has a file name that is not allowed')
  return name
}

function tooLarge(name: string, maxBytes: number): Error {
  return new Error(`${name} has more than ${maxBytes} bytes`)
}
