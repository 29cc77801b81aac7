/** A tunnel as callers of the agent's local API describe it: with the keys of ngrok's file, or with ours. */
import { isContent, type ReadText } from '../../link/options/file-values.ts'
import { OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { readOne, refusedInTunnels } from './ngrok-file.ts'
import { localTunnelKeys } from './ngrok-keys.ts'

/** Callers of the API must not be able to read the agent's files and environment. */
const contentOnly: ReadText = (text) => {
  if (isContent(text)) return text
  throw new Error('must be the content itself: this API reads no files')
}

/** `isTaken` tells whether a tunnel has this name. There are no plans when there are problems. */
export function readLocalTunnel(
  { name: given, ...rest }: Readonly<Record<string, unknown>>,
  { isTaken }: { readonly isTaken: (name: string) => boolean },
) {
  const problems: Problem[] = []
  const name = new OptionReader({ name: given }, problems).textOrNumber('name') || freeName(isTaken)
  if (isTaken(name)) problems.push({ path: ['name'], fault: 'is the name of another tunnel' })
  const context = { readText: contentOnly, env: {}, problems }
  const one = { name, path: [], table: localTunnelKeys, refused: refusedInTunnels }
  const plans = readOne(modern(rest), one, context)
  return { plans: problems.length === 0 ? plans : undefined, problems }
}

/** Translates keys of version 1, which older clients still send. */
function modern({ bind_tls, auth, ...rest }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const schemes = { true: ['https'], false: ['http'], both: ['http', 'https'] }[String(bind_tls)]
  return {
    ...rest,
    ...(schemes ? { schemes } : bind_tls !== undefined && { bind_tls }),
    ...(auth !== undefined && auth !== null && auth !== '' && { basic_auth: auth }),
  }
}

function freeName(isTaken: (name: string) => boolean): string {
  for (let i = 1; ; i++) if (!isTaken(`tunnel-${i}`)) return `tunnel-${i}`
}
