/** The checks of `postern doctor` for what only the server may read: who else can, and whether key and database fit together, and what is in it. */
import { errorCode } from '../../lib/error-code.ts'
import { isOpenToOthers } from '../../lib/files/open-to-others.ts'
import { readKeyFile } from '../../lib/secrets/seal.ts'
import { type Finding, toDo, unknown, well } from './finding.ts'

export function checkAccess(paths: readonly string[]): Finding[] {
  return paths.flatMap((path) => {
    try {
      if (!isOpenToOthers(path)) return []
    } catch (error) {
      return [unknown('access', `${path} cannot be checked: ${errorCode(error)}`)]
    }
    return [toDo('access', `other users of this machine have access to ${path}`, `run \`chmod o= ${path}\``)]
  })
}

/** Looks into the database, whose file is there and begins as one. */
export async function checkDatabase(
  databaseUrl: string,
  keyFile: string,
  ownNames: ReadonlySet<string>,
): Promise<Finding[]> {
  try {
    const { examineDatabase } = await import('../../server/compose/examine-database.ts')
    const { damage, isOtherKey, held } = await examineDatabase(databaseUrl, keyIdIn(keyFile), ownNames)
    if (damage !== undefined) return [damaged(damage)]
    const taken = held.map((each) =>
      toDo('own names', `callers or agents reach this server by ${each}`, 'give that edge or reservation another name'),
    )
    if (!isOtherKey)
      return [well('database contents', 'they are whole, and the key file is that of the database'), ...taken]
    const next = 'name the right file with --key-file, or restore it from a backup'
    return [
      toDo('key file', `${keyFile} is the key of another database: no secret can be read with it`, next),
      ...taken,
    ]
  } catch (error) {
    if (isDamage(error)) return [damaged(String(error))]
    return [unknown('database contents', `the database cannot be read: ${errorCode(error) ?? String(error)}`)]
  }
}

function damaged(why: string): Finding {
  return toDo('database contents', `the database is damaged: ${why}`, 'stop the server, and restore a backup')
}

/** SQLITE_CORRUPT and SQLITE_NOTADB, https://sqlite.org/rescode.html; extended codes have them in their low byte. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && [11, 26].includes(Number(error.errcode) & 0xff)
}

/** Undefined for a file that is reported by itself. */
function keyIdIn(keyFile: string): string | undefined {
  try {
    return readKeyFile(keyFile).keyId
  } catch {
    return undefined
  }
}
