/** The account at the authority: created once for each directory, shared by all nodes, its key sealed in the database. */
import { generateKeyPair } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Secret } from '../../lib/secrets/secret.ts'
import { accountAt } from '../records/acme-keys.ts'
import { holdKey } from '../records/sealing.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { type AcmeAuthority, type AcmeAuthorityOptions, openAuthorityAt } from './acme-authority.ts'
import { AcmeFault } from './order-fault.ts'

export interface AccountOptions
  extends Pick<ControlTools, 'store' | 'sealer' | 'now'>,
    Pick<AcmeAuthorityOptions, 'version' | 'directory' | 'email'> {
  readonly eabKeyId: string
  readonly eabKey: Secret | null
  /** A file in PEM. */
  readonly caFile: string | null
}

export class AcmeAccount {
  readonly #options: AccountOptions
  #opened: Promise<AcmeAuthority> | undefined

  constructor(options: AccountOptions) {
    this.#options = options
  }

  /** The authority, speaking for our account; rejects with `AcmeFault` when there is none. */
  async authority(): Promise<AcmeAuthority> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      // The next call tries again.
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** The authority no longer knows the account: it is created again on next use, with the same key. */
  async forget(): Promise<void> {
    this.#opened = undefined
    await this.#options.store.write(({ certificates }) => certificates.confirmAccount(this.#options.directory, ''))
  }

  async #open(): Promise<AcmeAuthority> {
    const { store, sealer, now, version, directory, email, eabKeyId, eabKey, caFile } = this.#options
    if ((eabKeyId === '') !== (eabKey === null)) {
      throw new AcmeFault(
        'ACME_ACCOUNT_REFUSED',
        '`--acme-eab-key-id` and `POSTERN_ACME_EAB_KEY` must be set together.',
      )
    }
    const ca = caFile === null ? undefined : await readRoots(caFile)
    const kept = (await store.read(({ certificates }) => certificates.account(directory))) ?? (await this.#make())
    const authority = await openAuthorityAt({
      directory,
      accountKey: sealer.open(kept.key, accountAt(directory)),
      accountUrl: kept.url,
      email,
      binding: eabKey ? { keyId: eabKeyId, key: eabKey.reveal() } : undefined,
      ca,
      now,
      version,
    })
    if (kept.url === '') {
      // This can be repeated: the same key leads to the same account.
      const url = await authority.account()
      await store.write(({ certificates }) => certificates.confirmAccount(directory, url))
    }
    return authority
  }

  /** If another node is faster, its key is used. */
  async #make() {
    const { store, sealer, directory } = this.#options
    const key = await newPrivateKey('ecdsa')
    return store.write(async (writer) => {
      await holdKey(writer, sealer)
      return writer.certificates.keepAccount(directory, sealer.seal(key, accountAt(directory)))
    })
  }
}

const makeKeyPair = promisify(generateKeyPair)

/** A new private key in PEM; RSA takes long, and is made on another thread. */
export async function newPrivateKey(type: 'ecdsa' | 'rsa'): Promise<string> {
  const { privateKey } =
    type === 'rsa'
      ? await makeKeyPair('rsa', { modulusLength: 2048 })
      : await makeKeyPair('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

async function readRoots(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new AcmeFault('AUTHORITY_UNAVAILABLE', '`--acme-ca` cannot be read.', { cause })
  }
}
