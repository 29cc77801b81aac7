/** Seals the secret fields of modules on their way into the store and opens them on their way out. */
import type { Sealer } from '../lib/seal.ts'
import type { Module, ModuleConfig } from '../modules/module.ts'

export function sealConfig(sealer: Sealer, module: Module, config: ModuleConfig): ModuleConfig {
  return mapSecrets(module, config, (text) => sealer.seal(text))
}

export function openConfig(sealer: Sealer, module: Module, config: ModuleConfig): ModuleConfig {
  return mapSecrets(module, config, (text) => sealer.open(text))
}

/** An unset secret stays the empty string: that it is unset is none. */
function mapSecrets(module: Module, config: ModuleConfig, change: (text: string) => string): ModuleConfig {
  if (!module.secrets) return config
  const changed: Record<string, unknown> = {}
  for (const field of module.secrets) {
    const value = config[field]
    if (typeof value === 'string' && value !== '') changed[field] = change(value)
  }
  return { ...config, ...changed }
}
