/** Why a server did not start or its database did not open, in one line that says what to do. */

import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { printable } from '../lib/text/printable.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { listenerNames } from '../server/config/systemd-sockets.ts'

interface Fault {
  readonly code?: unknown
  readonly errcode?: unknown
  readonly syscall?: unknown
  readonly path?: unknown
  readonly port?: unknown
}

/** Looks for a known error among the causes; if there is none, joins their messages. */
export function startFault(error: unknown, settings: Settings): string {
  const chain = causes(error)
  // The innermost error says most: it has the port of a listener, while the outer ones only name the listener.
  for (const each of chain.toReversed()) {
    const known = listenFault(each, settings) ?? fileFault(each) ?? databaseFault(each, settings)
    if (known !== undefined) return known
  }
  // The outer errors say where, and the innermost says what.
  const messages = chain.map((each) => (each instanceof Error ? each.message : '')).filter((text) => text !== '')
  return printable(withoutPasswords(messages.join(': ')))
}

function listenFault(error: Fault, settings: Settings): string | undefined {
  if (error.syscall !== 'listen' && error.code !== 'EADDRINUSE') return undefined
  const { flag, at } = listenerWith(Number(error.port), settings)
  switch (error.code) {
    case 'EADDRINUSE':
      return `${at} is in use by another program; stop that one, or choose another address with ${flag}`
    case 'EACCES':
      return `this user may not listen on ${at}; choose a port above 1023 with ${flag}, or grant CAP_NET_BIND_SERVICE`
    case 'EADDRNOTAVAIL':
      return `this machine does not have the address of ${at}; choose another with ${flag}`
    default:
      return undefined
  }
}

function listenerWith(port: number, settings: Settings): { flag: string; at: string } {
  for (const name of listenerNames) {
    const listen = settings[`${name}Listen` as const]
    if (listen?.port === port) return { flag: `--${name}-listen`, at: `${listen.host}:${port}` }
  }
  return { flag: '--tcp-ports', at: Number.isNaN(port) ? 'a port' : `port ${port}` }
}

const databaseFaults: Readonly<Record<string, string>> = {
  ECONNREFUSED:
    'nothing is listening at the address of the database; start PostgreSQL, or correct the host and port in --database-url',
  ENOTFOUND: 'the host in --database-url does not exist; correct it',
  EAI_AGAIN: 'the host in --database-url cannot be resolved; check the name and the network',
  ETIMEDOUT: 'the database does not respond; check the host in --database-url and any firewall in front of it',
  '28P01': 'the database refuses the password; correct it in --database-url',
  '28000': 'the database refuses this user; check --database-url and pg_hba.conf',
  '3D000': 'the database that --database-url names does not exist; create it with `createdb`',
  '53100': 'the disk of the database server is full; free some space there',
  '42501': 'the user of --database-url may not create tables; grant it that right',
}

// SQLite's own result codes.
const sqliteFaults: Readonly<Record<number, string>> = {
  5: 'the database file is locked by another program; stop that one',
  8: 'the database file is read-only; allow this user to write it',
  11: 'the database file is damaged; restore it from a backup',
  10: 'the database file cannot be read or written: its disk is failing; see the system log, and restore a backup if needed',
  13: 'the disk of the database file is full; free some space',
  14: 'the database file cannot be opened; check --database-url, and who may write that folder',
  26: 'the file that --database-url names is not a SQLite database',
}

function databaseFault({ code, errcode }: Fault, { databaseUrl }: Settings): string | undefined {
  // Extended SQLite codes have the primary code in their low byte.
  if (code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number') return sqliteFault(errcode & 0xff, databaseUrl)
  return typeof code === 'string' ? databaseFaults[code] : undefined
}

function sqliteFault(code: number, databaseUrl: string): string | undefined {
  const file = databaseUrl.replace(/^sqlite:/, '')
  const fault = sqliteFaults[code === IO_ERROR && isFull(dirname(file)) ? FULL : code]
  return fault?.replace('the database file', `the database file ${printable(file)}`)
}

/** SQLite's codes for an I/O error and for a full disk; a full disk is often reported as an I/O error. */
const IO_ERROR = 10
const FULL = 13

/** With less free space than this no database can be opened, in bytes: the index of its write-ahead log takes 32 KiB. */
const LEAST_SPACE_BYTES = 128 * 1024

function isFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < LEAST_SPACE_BYTES
  } catch {
    return false
  }
}

function fileFault({ code, path, syscall }: Fault): string | undefined {
  if (typeof path !== 'string' || typeof code !== 'string') return undefined
  const where = printable(path)
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `this user is not allowed to use ${where}; change its owner, or choose another place with --data-dir or --key-file`
    case 'EROFS':
      return `${where} is on a read-only file system; choose another folder with --data-dir`
    case 'ENOSPC':
    case 'EDQUOT':
      return `the disk of ${where} is full; free some space`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${where} is not a folder; choose another with --data-dir`
    case 'ENOENT':
      return syscall === 'mkdir'
        ? `no folder can be created at ${where}; choose another place with --data-dir or --key-file`
        : `${where} does not exist; create it, or name another with --data-dir or --key-file`
    case 'EISDIR':
      return `${where} is a folder where a file should be; choose another place with --data-dir, --database-url or --key-file`
    case 'EFBIG':
    case 'ETIMEDOUT':
      return `${where} is not a key file; name another with --key-file`
    default:
      return `${where} cannot be used (${printable(code)}); choose another place with --data-dir or --key-file`
  }
}

/** The error and its causes, outermost first; a failed connection to several addresses has one error for each. */
function causes(error: unknown): readonly (Fault & object)[] {
  const chain: object[] = []
  let each: unknown = error
  while (typeof each === 'object' && each !== null && !chain.includes(each)) {
    chain.push(each)
    each = each instanceof AggregateError ? each.errors[0] : 'cause' in each ? each.cause : undefined
  }
  return chain
}

function withoutPasswords(text: string): string {
  return text.replace(/(\w+:\/\/[^\s:/@]*):[^\s@]*@/g, '$1:[secret]@')
}
