#!/usr/bin/env node
/**
 * Starts Postern: in this process when its Node is new enough, else under the Node that came with the package.
 * Old Nodes read this file too, so it keeps to syntax and modules that Node 14 has.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const NEEDED = 24
const self = fileURLToPath(import.meta.url)
const root = dirname(dirname(self))
const source = join(root, 'src', 'main.ts')
// A clone runs its sources, whatever was built beside them; a package has none.
const isClone = existsSync(source)

if (major(process.versions.node) >= NEEDED) runHere()
else runUnder(bundledNode())

function runHere() {
  silenceSqliteWarning()
  if (isClone && root.split(sep).includes('node_modules')) {
    console.error(
      `Postern was installed as sources in ${root}, which Node does not run there.\n` +
        'Run `npm ci && npm pack` in a clone of it, and install the file that this makes.',
    )
    process.exit(1)
  }
  import(pathToFileURL(isClone ? source : join(root, 'dist', 'main.js')).href).catch((error) => {
    console.error(error)
    process.exit(1)
  })
}

/** node:sqlite says at every start that it is experimental, which tells an operator nothing; other warnings stay. */
function silenceSqliteWarning() {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = (warning, ...rest) => {
    const text = warning instanceof Error ? warning.message : String(warning)
    if (text.indexOf('SQLite is an experimental feature') !== 0) emitWarning(warning, ...rest)
  }
}

function runUnder(node) {
  if (node === null) {
    console.error(
      `Postern needs Node ${NEEDED} or newer, and this is Node ${process.versions.node}.\n` +
        `Get it from https://nodejs.org/ or with a version manager (\`nvm install ${NEEDED}\`), then run this again.` +
        (isClone ? '\nOn Linux, x64 or arm64, `npm ci` in the folder of Postern brings it too.' : ''),
    )
    process.exit(1)
  }
  let child
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2']
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  start(self)

  function start(launcher) {
    // An agent that restarts says what to start in its place: another release has a launcher of its own.
    let next = null
    // The channel tells the child that a launcher stands before it, and when the launcher is gone.
    const stdio = ['inherit', 'inherit', 'inherit'].concat(handedSockets(), 'ipc')
    child = spawn(node, process.execArgv.concat(launcher, process.argv.slice(2)), { stdio })
    child.on('message', (message) => {
      if (message && typeof message.start === 'string') next = message.start
    })
    child.on('error', (error) => {
      console.error(`Postern cannot run ${node}: ${error.message}. Install Node ${NEEDED} from https://nodejs.org/`)
      process.exit(1)
    })
    child.on('exit', (code, signal) => {
      if (next !== null && code === 0) return start(next)
      if (signal === null) process.exit(code === null ? 1 : code)
      for (const each of signals) process.removeAllListeners(each)
      process.kill(process.pid, signal)
    })
  }
}

/** The descriptors of sockets that systemd opened for us, which the child is to have under the same numbers. */
function handedSockets() {
  const count = process.env.LISTEN_PID === String(process.pid) ? Number(process.env.LISTEN_FDS) : 0
  return Array.from({ length: count > 0 && count < 65536 ? count : 0 }, (_, index) => 3 + index)
}

/** The Node inside the package `node-linux-<arch>`, wherever npm has put that. */
function bundledNode() {
  const name = `node-${process.platform}-${process.arch}`
  const folders = [join(root, 'node_modules', name)]
  try {
    folders.push(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)))
  } catch {
    // Not installed: an optional dependency of another platform.
  }
  for (const folder of folders) {
    const node = join(folder, 'bin', 'node')
    if (existsSync(node) && versionIn(folder) >= NEEDED) return node
  }
  return null
}

function versionIn(folder) {
  return major(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version)
}

function major(version) {
  return Number(version.split('.')[0])
}
