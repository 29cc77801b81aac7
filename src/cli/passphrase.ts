/** Where the passphrase of a backup comes from: a file, the environment, or the person at the terminal. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { printable } from '../lib/text/printable.ts'
import type { Ask } from './agent/ask.ts'
import { Failure, misuse } from './command-failure.ts'
import type { Terminal } from './terminal.ts'

const passphraseVariable = 'POSTERN_BACKUP_PASSPHRASE'

/** Shortest passphrase, in characters: whoever steals a backup can try passphrases offline, as fast as they can pay for. */
const MIN_LENGTH = 12

export interface PassphraseOptions {
  readonly passphraseFile?: string
}

/** The passphrase to encrypt a new backup with. */
export async function newPassphrase(options: PassphraseOptions, terminal: Terminal, ask: Ask): Promise<string> {
  const passphrase = givenPassphrase(options, terminal) ?? (await askTwice(ask))
  if (passphrase.length < MIN_LENGTH) throw misuse(`the passphrase is too short: use ${MIN_LENGTH} characters or more`)
  return passphrase
}

/** The passphrase that a backup was encrypted with. */
export async function knownPassphrase(options: PassphraseOptions, terminal: Terminal, ask: Ask): Promise<string> {
  return givenPassphrase(options, terminal) ?? (await askSecret(ask, 'Passphrase of the backup: '))
}

function givenPassphrase({ passphraseFile }: PassphraseOptions, { env, cwd }: Terminal): string | undefined {
  if (passphraseFile === undefined) return env[passphraseVariable] || undefined
  const path = resolve(cwd, passphraseFile)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Failure(`the passphrase file ${printable(path)} cannot be read`, { cause })
  }
  // Editors add a line end, which is not part of the passphrase.
  const passphrase = text.replace(/\r?\n$/, '')
  if (passphrase === '') throw misuse(`the passphrase file ${printable(path)} is empty`)
  return passphrase
}

async function askTwice(ask: Ask): Promise<string> {
  const first = await askSecret(ask, 'Passphrase for the backup: ')
  if ((await askSecret(ask, 'Repeat it: ')) !== first)
    throw new Failure('the passphrases do not match; nothing was written')
  return first
}

async function askSecret(ask: Ask, question: string): Promise<string> {
  if (ask.isPossible) return ask.question(question, { isSecret: true })
  throw misuse(
    `no passphrase: set ${passphraseVariable}, or give a file with --passphrase-file (--plain makes a backup without one)`,
  )
}
