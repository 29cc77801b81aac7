/** The flags of the bench. */
import { parseArgs } from 'node:util'
import { count, onlyRows } from '../flags.ts'

export interface Options {
  readonly rounds: number
  readonly seconds: number
  readonly agents: number
  /** Names of rows; null means all. */
  readonly only: readonly string[] | null
  /** Parts of contenders' names; null means all that are installed. */
  readonly contenders: readonly string[] | null
  /** Folder for the samples and a chart. */
  readonly out: string | null
  readonly sshCipher: string
  readonly nodeOptions: string
}

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: readonly string[], rowNames: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '9' },
      seconds: { type: 'string', default: '3' },
      agents: { type: 'string', default: '5000' },
      only: { type: 'string' },
      contenders: { type: 'string' },
      out: { type: 'string' },
      // The cipher that our server and agent negotiate, so that the comparison is not one of ciphers.
      'ssh-cipher': { type: 'string', default: 'aes128-gcm@openssh.com' },
      'node-options': { type: 'string', default: '' },
    },
  })
  return {
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds, 1),
    agents: count('agents', values.agents, 2),
    only: onlyRows(values.only, rowNames),
    contenders: values.contenders?.toLowerCase().split(',') ?? null,
    out: values.out ?? null,
    sshCipher: values['ssh-cipher'],
    nodeOptions: values['node-options'],
  }
}
