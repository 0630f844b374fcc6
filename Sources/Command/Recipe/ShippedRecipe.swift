/// A recipe that comes with this program, for one app in all its versions.
struct ShippedRecipe: Sendable {
  /// As `--recipe` takes it.
  let name: String
  /// The app, in a few words without a full stop.
  let summary: String
  /// As a file would have it.
  let text: String

  static let all = [gnucash, grocy, loopHabits, moneyManagerEx]

  private static let gnucash = ShippedRecipe(
    name: "gnucash", summary: "GnuCash, a book saved as a SQLite file",
    text: """
      { "v": 1, "name": "GnuCash",
        "tables": {
          "gnclock": "local",
          "versions": "local",
          "accounts": { "references": { "parent_guid": { "to": "accounts", "on_delete": "keep" },
                                        "commodity_guid": { "to": "commodities", "on_delete": "keep" } } },
          "transactions": { "references": { "currency_guid": "commodities" } },
          "splits": { "references": { "tx_guid": { "to": "transactions", "on_delete": "cascade" }, "account_guid": "accounts",
                                      "lot_guid": { "to": "lots", "on_delete": "keep" } } },
          "lots": { "references": { "account_guid": { "to": "accounts", "on_delete": "keep" } } },
          "prices": { "references": { "commodity_guid": "commodities", "currency_guid": "commodities" } },
          "budget_amounts": { "references": { "budget_guid": { "to": "budgets", "on_delete": "cascade" },
                                              "account_guid": { "to": "accounts", "on_delete": "cascade" } } },
          "taxtable_entries": { "references": { "taxtable": { "to": "taxtables", "on_delete": "cascade" },
                                                "account": "accounts" } } },
        "apply_when": "closed" }
      """)

  private static let grocy = ShippedRecipe(
    name: "grocy", summary: "Grocy, the household's stock, chores and recipes",
    text: """
      { "v": 1, "name": "Grocy",
        "tables": {
          "sessions": "local", "api_keys": "local", "migrations": "local",
          "cache__quantity_unit_conversions_resolved": "local", "cache__products_average_price": "local",
          "cache__products_last_purchased": "local",
          "products": { "references": { "location_id": "locations", "default_consume_location_id": "locations",
                                        "shopping_location_id": "shopping_locations", "product_group_id": "product_groups",
                                        "parent_product_id": "products", "qu_id_purchase": "quantity_units",
                                        "qu_id_stock": "quantity_units", "qu_id_consume": "quantity_units",
                                        "qu_id_price": "quantity_units" } },
          "product_barcodes": { "references": { "product_id": { "to": "products", "on_delete": "cascade" },
                                                "qu_id": "quantity_units",
                                                "shopping_location_id": "shopping_locations" } },
          "quantity_unit_conversions": { "references": { "from_qu_id": "quantity_units", "to_qu_id": "quantity_units",
                                                         "product_id": "products" } },
          "stock": { "references": { "product_id": "products", "location_id": "locations",
                                     "shopping_location_id": "shopping_locations" } },
          "stock_log": { "references": { "product_id": "products", "location_id": "locations", "recipe_id": "recipes",
                                         "shopping_location_id": "shopping_locations", "user_id": "users" } },
          "shopping_list": { "references": { "product_id": "products", "shopping_list_id": "shopping_lists",
                                             "qu_id": "quantity_units" } },
          "recipes_pos": { "references": { "recipe_id": { "to": "recipes", "on_delete": "cascade" }, "product_id": "products",
                                           "qu_id": "quantity_units" } },
          "recipes_nestings": { "references": { "recipe_id": { "to": "recipes", "on_delete": "cascade" },
                                                "includes_recipe_id": "recipes" } },
          "meal_plan": { "references": { "recipe_id": "recipes", "product_id": "products", "section_id": "meal_plan_sections" } },
          "chores_log": { "references": { "chore_id": { "to": "chores", "on_delete": "cascade" },
                                          "done_by_user_id": "users" } },
          "battery_charge_cycles": { "references": { "battery_id": { "to": "batteries", "on_delete": "cascade" } } },
          "tasks": { "references": { "category_id": "task_categories", "assigned_to_user_id": "users" } },
          "user_settings": "local" } }
      """)

  private static let loopHabits = ShippedRecipe(
    name: "loop-habits", summary: "Loop Habit Tracker",
    text: """
      { "v": 1, "name": "Loop Habit Tracker",
        "tables": {
          "Habits": { "identity": ["uuid"] },
          "Repetitions": { "references": { "habit": { "to": "Habits", "on_delete": "cascade" } } },
          "Checkmarks": "local", "Score": "local", "Streak": "local", "Events": "local" } }
      """)

  private static let moneyManagerEx = ShippedRecipe(
    name: "money-manager-ex", summary: "Money Manager Ex (.mmb)",
    text: """
      { "v": 1, "name": "Money Manager Ex",
        "tables": {
          "SETTING_V1": "local", "USAGE_V1": "local", "INFOTABLE_V1": "local",
          "CURRENCYFORMATS_V1": { "identity": ["CURRENCY_SYMBOL"], "lookup": true },
          "CURRENCYHISTORY_V1": { "identity": ["CURRENCYID", "CURRDATE"],
                                  "references": { "CURRENCYID": { "to": "CURRENCYFORMATS_V1", "on_delete": "cascade" } } },
          "STOCKHISTORY_V1": { "identity": ["SYMBOL", "DATE"] },
          "CATEGORY_V1": { "references": { "PARENTID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "SUBCATEGORY_V1": { "references": { "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "PAYEE_V1": { "references": { "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "ACCOUNTLIST_V1": { "references": { "CURRENCYID": { "to": "CURRENCYFORMATS_V1", "none": [-1, 0] } } },
          "ASSETS_V1": { "references": { "CURRENCYID": { "to": "CURRENCYFORMATS_V1", "none": [-1, 0] } } },
          "STOCK_V1": { "references": { "HELDAT": { "to": "ACCOUNTLIST_V1", "none": [-1, 0] } } },
          "CHECKINGACCOUNT_V1": { "references": { "ACCOUNTID": { "to": "ACCOUNTLIST_V1", "none": [-1, 0] },
                                                  "TOACCOUNTID": { "to": "ACCOUNTLIST_V1", "none": [-1, 0] },
                                                  "PAYEEID": { "to": "PAYEE_V1", "none": [-1, 0] },
                                                  "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "SPLITTRANSACTIONS_V1": { "references": { "TRANSID": { "to": "CHECKINGACCOUNT_V1", "on_delete": "cascade" },
                                                    "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "BILLSDEPOSITS_V1": { "references": { "ACCOUNTID": { "to": "ACCOUNTLIST_V1", "none": [-1, 0] },
                                                "TOACCOUNTID": { "to": "ACCOUNTLIST_V1", "none": [-1, 0] },
                                                "PAYEEID": { "to": "PAYEE_V1", "none": [-1, 0] },
                                                "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "BUDGETSPLITTRANSACTIONS_V1": { "references": { "TRANSID": { "to": "BILLSDEPOSITS_V1", "on_delete": "cascade" },
                                                          "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "BUDGETTABLE_V1": { "references": { "BUDGETYEARID": { "to": "BUDGETYEAR_V1", "on_delete": "cascade" },
                                              "CATEGID": { "to": "CATEGORY_V1", "none": [-1, 0] } } },
          "CUSTOMFIELDDATA_V1": { "references": { "FIELDID": { "to": "CUSTOMFIELD_V1", "on_delete": "cascade" } } },
          "SHAREINFO_V1": { "references": { "CHECKINGACCOUNTID": { "to": "CHECKINGACCOUNT_V1", "on_delete": "cascade" } } },
          "TRANSLINK_V1": { "references": { "CHECKINGACCOUNTID": { "to": "CHECKINGACCOUNT_V1", "on_delete": "cascade" },
                                            "LINKRECORDID": { "by": "LINKTYPE", "to": { "Asset": "ASSETS_V1",
                                                                                        "Stock": "STOCK_V1" } } } },
          "TAGLINK_V1": { "references": { "TAGID": { "to": "TAG_V1", "on_delete": "cascade" },
                                          "REFID": { "by": "REFTYPE", "none": [-1, 0], "to": {
                                            "Transaction": "CHECKINGACCOUNT_V1", "TransactionSplit": "SPLITTRANSACTIONS_V1",
                                            "RecurringTransaction": "BILLSDEPOSITS_V1",
                                            "RecurringTransactionSplit": "BUDGETSPLITTRANSACTIONS_V1" } } } },
          "ATTACHMENT_V1": { "references": { "REFID": { "by": "REFTYPE", "none": [-1, 0], "to": {
                                               "Transaction": "CHECKINGACCOUNT_V1", "Stock": "STOCK_V1",
                                               "Asset": "ASSETS_V1", "BankAccount": "ACCOUNTLIST_V1",
                                               "Bank Account": "ACCOUNTLIST_V1", "RepeatingTransaction": "BILLSDEPOSITS_V1",
                                               "Repeating Transaction": "BILLSDEPOSITS_V1",
                                               "RecurringTransaction": "BILLSDEPOSITS_V1", "Payee": "PAYEE_V1" } } } } } }
      """)
}
