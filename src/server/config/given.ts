/** The text of a setting, and where it was given: `--data-dir`, `POSTERN_DATA_DIR`, `postern.yml line 3`. */
export interface Given {
  readonly text: string
  readonly from: string
}
