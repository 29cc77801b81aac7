/** Where the configuration of an agent lies: in the file that was named, in the working folder, in the home of the user. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

export const LOCAL_FILE = 'postern-agent.yml'

export type Environment = Readonly<Record<string, string | undefined>>

export interface FoundFile {
  readonly path: string
  /** Somebody named it, it lies in the home of the user, or it was merely found where the command was started. */
  readonly origin: 'named' | 'home' | 'found'
}

/** What is there, the more special first. A named file counts alone, and need not be there. */
export function findAgentFiles({
  named,
  cwd,
  env,
}: {
  named?: string | undefined
  cwd: string
  env: Environment
}): FoundFile[] {
  if (named !== undefined) return [{ path: resolve(cwd, named), origin: 'named' }]
  const files: FoundFile[] = [
    { path: join(cwd, LOCAL_FILE), origin: 'found' },
    { path: homeFile(env), origin: 'home' },
  ]
  return files.filter(({ path }) => existsSync(path))
}

/** The file that `postern login` writes. */
export function homeFile(env: Environment): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'postern', 'agent.yml')
}
