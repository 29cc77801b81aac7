/** The host key of the SSH gateway: made with its database, shared by its nodes, sealed at rest. */
import type { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { makeSshHostKey } from '../../lib/ssh-keys/ssh-host-key.ts'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import type { Reseal } from './reseal-database.ts'
import { holdKey } from './sealing.ts'

/** The fact that holds the key: its public line, readable, and its private text, sealed. */
const HOST_KEY = 'ssh_host_key'

/** The context under which the private text is sealed. */
const CONTEXT = `meta/${HOST_KEY}/key`

interface Kept {
  readonly line: string
  readonly key: string
}

interface OpenHostKey {
  readonly privateText: Secret
  /** As clients show it when they connect for the first time. */
  readonly fingerprint: string
}

/** Opens the host key of `store`; a new database gets a new one. */
export async function openSshHostKey(store: Store, sealer: Sealer): Promise<OpenHostKey> {
  const known = await store.read((reader) => reader.meta(HOST_KEY))
  const text =
    known ??
    (await store.write(async (writer) => {
      await holdKey(writer, sealer)
      const { publicLine, privateText } = makeSshHostKey()
      const kept: Kept = { line: publicLine, key: sealer.seal(privateText, CONTEXT) }
      return writer.keepMeta(HOST_KEY, JSON.stringify(kept))
    }))
  const { line, key } = JSON.parse(text) as Kept // written above
  return { privateText: new Secret(opened(sealer, key)), fingerprint: readSshPublicKey(line).fingerprint }
}

/** Seals the host key again; returns the number of keys. */
export async function resealSshHostKey(writer: Writer, reseal: Reseal): Promise<number> {
  const text = await writer.meta(HOST_KEY)
  if (text === undefined) return 0
  const { line, key } = JSON.parse(text) as Kept // written above
  const kept: Kept = { line, key: reseal(key, CONTEXT) }
  await writer.setMeta(HOST_KEY, JSON.stringify(kept))
  return 1
}

function opened(sealer: Sealer, key: string): string {
  try {
    return sealer.open(key, CONTEXT)
  } catch (cause) {
    const what = 'the SSH host key in the database cannot be opened'
    throw new Error(`${what}: somebody changed it there; restore the database from a backup`, { cause })
  }
}
