/** How people run Postern where this copy of it lies, so that a command that we print can be pasted. */

export interface Started {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The program that was started: a link to us, once npm has installed us. */
  readonly program?: string | undefined
  /** Where our own code lies. */
  readonly self?: string
}

/** `npx postern` in a clone, in the folder of a project, and wherever `npx` ran us; `postern` once installed for all. */
export function commandName({ env, program = process.argv[1], self = import.meta.url }: Started): string {
  // An installed copy holds JavaScript alone.
  const isClone = self.endsWith('.ts')
  const isInProject = /[\\/]node_modules[\\/]\.bin[\\/]/.test(program ?? '')
  return isClone || isInProject || env.npm_command === 'exec' ? 'npx postern' : 'postern'
}
