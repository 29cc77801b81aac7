/** Reads every TypeScript file under a folder, by its path from the root of the repository. */
import { globSync, readFileSync } from 'node:fs'
import { sep } from 'node:path'

export function readSources(folder: string): Map<string, string> {
  const files = globSync(`${folder}/**/*.{ts,tsx}`, { exclude: ['**/node_modules/**'] }).sort()
  return new Map(files.map((file) => [file.replaceAll(sep, '/'), readFileSync(file, 'utf8')]))
}
