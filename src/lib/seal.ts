/** Encrypts secrets for the store: AES-256-GCM under the key of one file. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { existsSync, linkSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from './make-folder.ts'
import { readSmallFile } from './read-small-file.ts'

const KEY_BYTES = 32
/** Largest key file that is read, in bytes; ours have 45. */
const MAX_FILE_BYTES = 4096
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MARK = 'sealed:1:'

export class Sealer {
  readonly #key: Buffer
  /** Tells keys apart without telling the key. */
  readonly keyId: string

  constructor(key: Buffer) {
    if (key.length !== KEY_BYTES) throw new Error(`a sealing key has ${KEY_BYTES} bytes`)
    this.#key = key
    this.keyId = createHash('sha256').update('postern key id\0').update(key).digest('hex').slice(0, 16)
  }

  seal(text: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return MARK + sealed.toString('base64')
  }

  /** Gives back what was sealed; throws when it was changed or sealed under another key. */
  open(sealed: string): string {
    if (!sealed.startsWith(MARK)) throw new Error('not a sealed value')
    const bytes = Buffer.from(sealed.slice(MARK.length), 'base64')
    // With the length named, a tag cut short is refused; GCM itself would take one of four bytes.
    const options = { authTagLength: TAG_BYTES }
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES), options)
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
  }
}

/** Whether a sealing key stands at `path` already. */
export function hasKeyFile(path: string): boolean {
  return existsSync(path)
}

/** Makes a key file that only its owner can read, unless there is one; nobody ever sees half of it. */
export function makeKeyFile(path: string, text: string = randomBytes(KEY_BYTES).toString('base64')): void {
  makeFolder(dirname(path))
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    // Another node that shares the file was faster, and its key is as good.
    if (!existsSync(path)) throw error
  } finally {
    unlinkSync(draft)
  }
}

/** Reads the key file at `path`. */
export function readKeyFile(path: string): Sealer {
  return readKeyText(keyText(path), path)
}

/** What stands in the key file at `path`. */
export function keyText(path: string): string {
  return readSmallFile(path, MAX_FILE_BYTES).trim()
}

/** Opens what stood in a key file; `name` is how a fault calls it. */
export function readKeyText(text: string, name: string): Sealer {
  const key = Buffer.from(text, 'base64')
  if (key.length !== KEY_BYTES)
    throw new Error(`${name} is not a key file: it should hold ${KEY_BYTES} bytes as base64`)
  return new Sealer(key)
}

/** Puts the key file at `from` in the place of the one at `to`, which is gone then. */
export function replaceKeyFile(from: string, to: string): void {
  renameSync(from, to)
}

export function removeKeyFile(path: string): void {
  rmSync(path, { force: true })
}
