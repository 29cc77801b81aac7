/** Encrypts secrets with AES-256-GCM under the key in one file; each is bound to the record it belongs to. */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { existsSync, linkSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../files/make-folder.ts'
import { readSmallFile } from '../files/read-small-file.ts'
import { drawBytes } from './draw-bytes.ts'

const KEY_BYTES = 32
/** Largest key file that is read, in bytes; ours have 45. */
const MAX_FILE_BYTES = 4096
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MARK = 'sealed:2:'
/** Begins values of the first form, which were not bound to a record. */
const FIRST_MARK = 'sealed:1:'

/** Why a value cannot be opened. */
export class SealFault extends Error {
  /** `changed` also covers a value sealed for another context. */
  readonly reason: 'not_sealed' | 'other_key' | 'changed'

  constructor(reason: SealFault['reason'], cause?: unknown) {
    super(sentences[reason], cause === undefined ? undefined : { cause })
    this.name = 'SealFault'
    this.reason = reason
  }
}

const sentences: Readonly<Record<SealFault['reason'], string>> = {
  not_sealed: 'not a sealed value of this version',
  other_key: 'sealed under another key',
  changed: 'changed since it was sealed, or sealed for another place',
}

export class Sealer {
  /** A key object, not bytes: Node would make a key of them each time, which takes longer than sealing. */
  readonly #key: KeyObject
  /** Distinguishes keys without revealing them. */
  readonly keyId: string

  constructor(key: Buffer) {
    if (key.length !== KEY_BYTES) throw new Error(`a sealing key has ${KEY_BYTES} bytes`)
    this.#key = createSecretKey(key)
    this.keyId = createHash('sha256').update('postern key id\0').update(key).digest('hex').slice(0, 16)
  }

  /** Derives another key from this one: the other key opens nothing that this one sealed, and reveals nothing of it. */
  keyFor(purpose: string): Uint8Array {
    return new Uint8Array(hkdfSync('sha256', this.#key, '', `postern key for ${purpose}`, KEY_BYTES))
  }

  /** A digest under a derived key: without the key nobody can guess the digested text. 256 bits in base64url. */
  digestFor(purpose: string): (text: string) => string {
    const key = createSecretKey(this.keyFor(purpose))
    return (text) => createHmac('sha256', key).update(text).digest('base64url')
  }

  /** `context` names what the value belongs to. It is not stored: opening the value requires the same context. */
  seal(text: string, context: string): string {
    const nonce = drawBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(contextBytes(context))
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `${MARK}${this.keyId}:${sealed.toString('base64')}`
  }

  /** Returns what was sealed for `context`; throws a `SealFault` for another context, another key, or changed bytes. */
  open(sealed: string, context: string): string {
    const [, keyId, base64 = ''] = /^sealed:2:([0-9a-f]{16}):(.*)$/s.exec(sealed) ?? []
    if (keyId === undefined) throw new SealFault('not_sealed')
    if (keyId !== this.keyId) throw new SealFault('other_key')
    try {
      return this.#decipher(base64, contextBytes(context))
    } catch (cause) {
      throw new SealFault('changed', cause)
    }
  }

  /** Opens a value of the first form, which has no context: the caller must be sure that the value belongs here. */
  openFirstForm(sealed: string): string {
    if (!isFirstForm(sealed)) throw new SealFault('not_sealed')
    return this.#decipher(sealed.slice(FIRST_MARK.length), undefined)
  }

  #decipher(base64: string, aad: Buffer | undefined): string {
    const bytes = Buffer.from(base64, 'base64')
    // Naming the tag length makes Node refuse a shortened tag; otherwise GCM would accept one of four bytes.
    const options = { authTagLength: TAG_BYTES }
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES), options)
    if (aad) decipher.setAAD(aad)
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    // As bytes first: for text, Node would make a new decoder each time.
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
  }
}

/** Whether a value was sealed by a version that did not bind values to a context. */
export function isFirstForm(sealed: string): boolean {
  return sealed.startsWith(FIRST_MARK)
}

/** The authenticated data of a value. It includes the form, so that a value of one form never opens as another. */
function contextBytes(context: string): Buffer {
  return Buffer.from(`${MARK}${context}`)
}

/** Whether there is a key file at `path`. */
export function hasKeyFile(path: string): boolean {
  return existsSync(path)
}

/** Makes a key file that only its owner can read, unless there is one; it appears whole or not at all. */
export function makeKeyFile(path: string, text: string = randomBytes(KEY_BYTES).toString('base64')): void {
  makeFolder(dirname(path))
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    // Another node that shares the file was faster; its key is used.
    if (!existsSync(path)) throw error
  } finally {
    unlinkSync(draft)
  }
}

/** Reads the key file at `path`. */
export function readKeyFile(path: string): Sealer {
  return readKeyText(keyText(path), path)
}

/** The text of the key file at `path`. */
export function keyText(path: string): string {
  return readSmallFile(path, MAX_FILE_BYTES).trim()
}

/** Makes a sealer from the text of a key file; an error calls the file `name`. */
export function readKeyText(text: string, name: string): Sealer {
  const key = Buffer.from(text, 'base64')
  if (key.length !== KEY_BYTES)
    throw new Error(`${name} is not a key file: it should hold ${KEY_BYTES} bytes as base64`)
  return new Sealer(key)
}

/** Moves the key file at `from` to `to`, replacing the one there. */
export function replaceKeyFile(from: string, to: string): void {
  renameSync(from, to)
}

export function removeKeyFile(path: string): void {
  rmSync(path, { force: true })
}
