/** Parses the container file: its stages, and what the last one sets. */
import { readFileSync } from 'node:fs'

export interface Instruction {
  readonly name: string
  readonly value: string
}

/** Instructions in order, by stage. */
export const stages: readonly (readonly Instruction[])[] = readFileSync('Dockerfile', 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split(/^(?=FROM )/m)
  .filter((stage) => stage.trim() !== '')
  .map((stage) =>
    [...stage.matchAll(/^([A-Z]+) +(.*)$/gm)].map(([, name = '', value = '']): Instruction => ({ name, value })),
  )

/** The value of an instruction in the last stage; the first if there are several. */
export function instruction(wanted: string): string {
  return stages.at(-1)?.find(({ name }) => name === wanted)?.value ?? ''
}

/** The variables of the image. */
export const imageEnv: Readonly<Record<string, string>> = Object.fromEntries(
  instruction('ENV')
    .split(/ +/)
    .map((pair) => pair.split('=') as [string, string]),
)
