/** The name under which this copy of Postern can be run, so that printed commands can be pasted. */

interface Started {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The program that was started; for a copy that npm installed, a link to it. */
  readonly program?: string | undefined
  /** The URL of this file. */
  readonly self?: string
}

/** `npx postern` in a clone, in a project, or when run by `npx`; `postern` when installed globally. */
export function commandName({ env, program = process.argv[1], self = import.meta.url }: Started): string {
  // An installed copy has only JavaScript.
  const isClone = self.endsWith('.ts')
  const isInProject = /[\\/]node_modules[\\/]\.bin[\\/]/.test(program ?? '')
  return isClone || isInProject || env.npm_command === 'exec' ? 'npx postern' : 'postern'
}
