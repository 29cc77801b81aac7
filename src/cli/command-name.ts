/** How people run Postern where this copy of it lies, so that a command that we print can be pasted. */

/** `npx postern` in a clone and wherever `npx` ran us, `postern` once it is installed. */
export function commandName(env: Readonly<Record<string, string | undefined>>, self: string = import.meta.url): string {
  // An installed copy holds JavaScript alone.
  const isClone = self.endsWith('.ts')
  return isClone || env.npm_command === 'exec' ? 'npx postern' : 'postern'
}
