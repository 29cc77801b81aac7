/** Writes a file atomically: it is either complete and on disk, or not there. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { printable } from '../lib/text/printable.ts'
import { Failure } from './command-failure.ts'

/** Writes `pieces` to `path`, readable only by its owner; resolves with the number of bytes. */
export async function writeWhole(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
  { force }: { force: boolean },
): Promise<number> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.part`
  const file = await open(draft, 'wx', 0o600)
  const leave = (): void => process.exit(130)
  const removeOnExit = onExit(draft)
  for (const signal of signals) process.once(signal, leave)
  try {
    let bytes = 0
    try {
      for await (const piece of pieces) {
        await file.writeFile(piece)
        bytes += piece.length
      }
      await file.sync()
    } finally {
      await file.close()
    }
    // Unlike a rename, a link never replaces an existing file.
    if (force) await rename(draft, path)
    else await link(draft, path).catch((cause: unknown) => refuseExisting(path, cause))
    await syncFolder(dirname(path))
    return bytes
  } finally {
    await rm(draft, { force: true })
    removeOnExit()
    for (const signal of signals) process.off(signal, leave)
  }
}

function refuseExisting(path: string, cause: unknown): never {
  if (Object(cause).code !== 'EEXIST') throw cause
  throw new Failure(`there is already a file at ${printable(path)}; choose another name, or replace it with --force`)
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function onExit(draft: string): () => void {
  const remove = (): void => rmSync(draft, { force: true })
  process.once('exit', remove)
  return () => process.off('exit', remove)
}

/** A new file survives a power cut only once its folder is flushed too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
