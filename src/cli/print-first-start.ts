/** What the first start prints, once: the credentials that it created and what to try with them. */

import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { Addresses, RunningServer } from '../server/compose/open-server.ts'
import type { Settings } from '../server/config/read-settings.ts'

type FirstStart = NonNullable<RunningServer['firstStart']>

/**
 * The text for stdout; `command` is how Postern is run here. A preset secret is not repeated: the operator knows it, and
 * output is often stored.
 */
export function firstStartBanner(
  { apiKey, authtoken, userId }: FirstStart,
  addresses: Addresses,
  { dataDir, bootstrap, apiTls }: Settings,
  command: string,
): string {
  const key = bootstrap.apiKey ? '$POSTERN_BOOTSTRAP_API_KEY' : apiKey
  const shownKey = bootstrap.apiKey ? 'as set in POSTERN_BOOTSTRAP_API_KEY' : apiKey
  const shownAuthtoken = bootstrap.authtoken ? 'as set in POSTERN_BOOTSTRAP_AUTHTOKEN' : authtoken
  const token = bootstrap.authtoken ? '$POSTERN_BOOTSTRAP_AUTHTOKEN' : authtoken
  const base = webAddress(addresses.api, apiTls ? 'https' : 'http')
  const ca = join(dataDir, 'ca.pem')
  const server = reachable(addresses.agents)
  const curl = `curl ${apiTls ? `--cacert ${word(ca)} ` : ''}-H "Authorization: Bearer ${key}" -H "Service-Version: 2"`
  return `
Welcome to Postern. This is the first start: save the following, it will not be shown again.

  Admin             ${userId}
  Admin API key     ${shownKey}
  Agent authtoken   ${shownAuthtoken}
  CA certificate    ${ca}
  Data folder       ${dataDir}

Try it, with a service that listens on port 3000:

  ${command} http 3000 --server ${server} --ca ${word(ca)} --authtoken ${token}
  ${curl} ${base}/tunnels
  ${curl} -H "Content-Type: application/json" -d '{"description":"my first edge"}' ${base}/edges/https

`
}

/** Quotes a text as one word of a shell command, if needed. */
function word(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** The URL at which this machine reaches a listener. */
export function webAddress(address: string, scheme: 'http' | 'https' = 'http'): string {
  return /^\w+:\/\//.test(address) ? address : `${scheme}://${reachable(address)}`
}

/** The address at which this machine reaches a listener: loopback, if it listens on all addresses. */
export function reachable(address: string): string {
  const [, host = '', port = ''] = /^(?:https?:\/\/)?\[?([^\]/]*?)\]?:(\d+)\/?$/.exec(address) ?? []
  if (port === '') return address
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${isIPv6(reached) ? `[${reached}]` : reached}:${port}`
}
