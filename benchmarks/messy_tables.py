"""Twelve messy tables, written by someone who had read only the README.

Each is made from a seed: 2,000 to 6,000 rows to fit and as many fresh ones, later in time
or of customers not seen before, with 2 to 8 % positives. The label depends on columns that
are hard to read, so that a column lost or misread costs average precision (AP). Beside the
file as a user would have it, each table has the clean values (what an oracle would read),
the true log odds by column, hence the best AP there is, and what is left of it without one
column. ``messy.py`` fits and scores them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from messy_making import (
    DAY,
    Draft,
    Table,
    delimited,
    full_width,
    grouped,
    hour_risk,
    indian,
    nested_json,
    spelled,
    standard,
    time_of_day,
    workbook,
    zipped,
)


def german_payments() -> Table:
    """German card payments: semicolons, cp1252, 1.234,56 €, dd.mm.yyyy, ja/nein, k.A."""
    t = Draft(1, 4000)
    rng, n = t.rng, t.n
    when = t.days("2023-01-01", 12)
    hours = time_of_day(when)
    amount = np.exp(rng.normal(5.0, 1.3, n))
    age = rng.integers(1, 4000, n)
    share = rng.beta(2, 5, n) * 100
    abroad = rng.random(n) < 0.15
    kind = t.pick(["Möbel", "Bücher", "Lebensmittel", "Schmuck/Uhren", "Überweisung"])
    blanks = "|k.A.|-|unbekannt|#NV"
    t.add(
        "Vorgangs-Nr.", [f"V{100_000 + k}" for k in range(n)], trap="a number for each row"
    )
    t.add("Buchungsdatum", spelled(when, "%d.%m.%Y"))
    t.add("Uhrzeit", spelled(when, "%H:%M"), hours, 1.1 * hour_risk(hours))
    t.number(
        "Betrag",
        amount,
        lambda v: grouped(v, ".", ",") + " €",
        1.5,
        log=True,
        missing=0.03,
        blanks=blanks,
    )
    t.date("Kunde seit", when, -age, "%d.%m.%Y", -1.2, log=True)
    t.number(
        "Anteil Ausland",
        share,
        lambda v: grouped(v, ".", ",", 1) + " %",
        0.9,
        missing=0.05,
        blanks=blanks,
    )
    t.add("Ausland", np.where(abroad, "ja", "nein"), abroad * 1, 1.5 * abroad)
    t.add("Händlerart", kind, kind, 1.3 * np.isin(kind, ["Schmuck/Uhren", "Überweisung"]))
    t.add("Währung", ["EUR"] * n, trap="one value only")
    t.add("Bemerkung", [""] * n, trap="blank")
    t.draw(0.04)
    return t.table("Betrug", (["Nein"], ["Ja"]), "zahlungen.csv", delimited(";", "cp1252"))


def indian_loans() -> Table:
    """Indian loans: ₹12,34,567 and Rs., lakh, 15-Aug-2023, -1 for no history, % p.a."""
    t = Draft(2, 3000)
    rng, n = t.rng, t.n
    when = t.days("2022-04-01", 18)
    income = np.exp(rng.normal(13.3, 0.6, n)).round(-3)
    loan = (income * np.exp(rng.normal(0.2, 0.8, n))).round(-3)
    new = rng.random(n) < 0.18
    score = rng.normal(700, 70, n).clip(300, 900).round()
    tenure = t.pick([12, 24, 36, 48, 60])
    birth = when.astype("datetime64[D]") - rng.integers(21 * 365, 60 * 365, n) * DAY
    first = t.pick(
        ["Aarav", "Priya", "Rohan", "Ananya", "Vikram", "Sneha", "Arjun", "Divya"]
    )
    last = t.pick(["Sharma", "Patel", "Reddy", "Iyer", "Khan", "Singh", "Das", "Nair"])
    rupees = [("₹" if k % 3 else "Rs. ") + indian(v) for k, v in enumerate(income)]
    lakh = [f"₹{v / 1e5:.2f} lakh" if v >= 1e6 else "₹" + indian(v) for v in loan]
    t.add(
        "Application No", [f"LN/{2022 + k // 4000}/{k:06d}" for k in range(n)], trap="an id"
    )
    t.add("Applicant Name", [f"{a} {b}" for a, b in zip(first, last, strict=True)])
    t.add("Date of Birth", spelled(birth, "%d/%m/%Y"))
    t.add("Sanction Date", spelled(when, "%d-%b-%Y"))
    t.add(
        "Annual Income",
        rupees,
        income,
        -1.2 * standard(np.log(income)),
        0.04,
        "|NA|Not Provided|nil",
    )
    t.add("Loan Amount", lakh, loan, 1.6 * standard(np.log(loan)))
    t.number("Tenure", tenure, lambda v: f"{v} months", 0.8)
    t.add(
        "CIBIL",
        np.where(new, -1, score).astype(int),
        np.where(new, np.nan, score),
        np.where(new, 0.8, -1.6 * (score - 700) / 70),
        trap="-1 is no history",
    )
    rate = rng.normal(11, 2, n).clip(6, 20)
    t.number("ROI", rate, lambda v: f"{v:.2f}% p.a.", 0.8)
    purpose = t.pick(["Home", "Gold Loan", "Two-Wheeler", "Personal", "personal "])
    t.add("Purpose", purpose, [p.strip().title() for p in purpose])
    t.draw(0.05)
    return t.table("Default", (["N"], ["Y"]), "loans.csv", delimited())


def japanese_machines() -> Table:
    """Japanese machine log: Shift-JIS, 2023年4月5日, full-width digits, ℃, 時間/分, MPa."""
    t = Draft(3, 3000)
    rng, n = t.rng, t.n
    when = t.days("2023-04-01", 10)
    heat = rng.normal(72, 9, n)
    turns = rng.normal(1500, 220, n).round()
    minutes = rng.integers(20, 900, n)
    since = rng.integers(0, 180, n)
    pressure = rng.normal(0.5, 0.08, n)
    oil = t.pick(["高", "中", "低"], [0.3, 0.5, 0.2])
    blanks = "|－|未測定|不明"
    date = "%Y年%-m月%-d日"
    t.add("№", np.arange(1, n + 1), trap="a number for each row")
    t.add("日時", spelled(when, date + " %H時%M分"))
    t.add("号機", [f"{k}号機" for k in rng.integers(1, 9, n)])
    t.number("温度", heat, lambda v: f"{v:.1f}℃", 1.5, missing=0.04, blanks=blanks)
    t.number("回転数", turns, lambda v: full_width(f"{v:.0f}"), 1.3)
    t.number("稼働時間", minutes, lambda v: f"{v // 60}時間{v % 60:02d}分", 1.2)
    t.date("前回点検日", when, -since, date, 1.2)
    t.number("圧力", pressure, lambda v: f"{v:.3f}MPa", -0.9)
    t.add("油量", oil, oil, 1.3 * (oil == "低"))
    t.add("備考", [""] * n, trap="blank")
    t.draw(0.05)
    return t.table("故障", (["なし"], ["あり"]), "設備ログ.csv", delimited(",", "cp932"))


def hospital_workbook() -> Table:
    """Excel: title and blank line above the header, a total below, a second sheet, numbers
    and text mixed, 140/90, <45, 4+."""
    t = Draft(4, 2500)
    rng, n = t.rng, t.n
    when = t.days("2023-01-01", 12).astype("datetime64[D]")
    stay = rng.integers(1, 30, n)
    weight = rng.normal(78, 15, n).clip(40, 160)
    upper = rng.normal(135, 20, n).round()
    lower = (upper * 0.6 + rng.normal(0, 6, n)).round()
    creatinine = np.exp(rng.normal(4.4, 0.4, n))
    visits = rng.poisson(1.2, n)
    out = [pd.Timestamp(day).to_pydatetime() for day in when]
    came = [pd.Timestamp(day).to_pydatetime() for day in when - stay * DAY]
    typed = rng.random(n)
    t.add(
        "NHS no.",
        [f"{485_000_0000 + 7 * k}" for k in range(n)],
        trap="a number for each row",
    )
    t.add(
        "Admitted",
        [
            d.strftime("%d/%m/%Y") if u < 0.1 else d
            for d, u in zip(came, typed, strict=True)
        ],
        stay,
        1.3 * standard(np.log(stay)),
    )
    t.add("Discharged", out)
    t.add(
        "Weight",
        [
            f"{v:.1f} kg" if u < 0.6 else f"{v:.0f}kg" if u < 0.8 else round(v, 1)
            for v, u in zip(weight, typed, strict=True)
        ],
        weight,
        -1.2 * standard(weight),
        0.05,
        "not weighed|n/a|None|?",
    )
    t.add(
        "BP",
        [f"{u:.0f}/{v:.0f}" for u, v in zip(upper, lower, strict=True)],
        upper,
        1.3 * standard(upper),
        0.03,
        "None|refused",
    )
    t.add(
        "Creatinine",
        [f"<{45}" if v < 45 else round(v, 1) for v in creatinine],
        creatinine.clip(45),
        1.2 * standard(np.log(creatinine)),
        0.06,
        "haemolysed|pending|None|-999",
    )
    t.add(
        "A&E visits (12m)",
        [("none", "one", 2, 3)[v] if v < 4 else "4+" for v in visits],
        visits.clip(0, 4),
        1.2 * standard(visits),
    )
    ward = t.pick(["Ward 3", "ward 3", "Ward 7", "ITU", "I.T.U."])
    t.add("Ward", ward, [w.lower().replace(".", "") for w in ward])
    t.draw(0.06)
    return t.table(
        "Readmitted?",
        (["No", "no", "NO "], ["Yes", "yes", "YES"]),
        "readmissions.xlsx",
        workbook,
    )


def us_insurance() -> Table:
    """US insurance claims: $1,234.00, ($1,234) negative, 3/7/23, 2:35 PM, ZIP codes."""
    t = Draft(5, 4000)
    rng, n = t.rng, t.n
    when = t.days("2023-01-01", 14)
    loss = when.astype("datetime64[D]")
    hours = (when - loss) / np.timedelta64(1, "h")
    claim = np.exp(rng.normal(8.2, 1.0, n))
    change = rng.normal(0, 2500, n)
    policy = rng.integers(1, 2000, n)
    delay = rng.geometric(0.08, n)
    share = rng.beta(2, 3, n) * 100
    dollars = [f"(${-v:,.0f})" if v < 0 else f"${v:,.0f}" for v in change]
    t.add("Claim #", [f"{k:08d}-A" for k in range(n)], trap="an id")
    t.date("Policy Start", loss, -policy, "%-m/%-d/%y", -1.3, log=True)
    t.add("Loss Date", spelled(loss, "%-m/%-d/%y"))
    t.add("Loss Time", spelled(when, "%-I:%M %p"), hours, 1.0 * hour_risk(hours))
    t.date("Reported", loss, delay, "%-m/%-d/%y", 1.1)
    t.number(
        "Claim Amt",
        claim,
        lambda v: f"${v:,.2f}",
        1.5,
        log=True,
        missing=0.03,
        blanks="TBD||N/A|$ -",
    )
    t.add("Reserve Change", dollars, change, 1.2 * standard(change))
    t.number("Fault", share, lambda v: f"{v:.0f}%", -0.8)
    t.add("ZIP", [f"{v:05d}" for v in rng.integers(501, 9999, n)], trap="a number by looks")
    t.add("State", t.pick(["NY", "NJ", "CT", "MA", "ME"]))
    t.draw(0.03)
    return t.table("FRAUD_IND", (["0"], ["1"]), "claims.csv", delimited())


def swiss_invoices() -> Table:
    """Swiss invoices: UTF-16 with tabs (Excel's Unicode text), 1'234.56 with either
    apostrophe, CHF, minus behind, dd.mm.yy, ja/oui/sì."""
    t = Draft(6, 2500)
    rng, n = t.rng, t.n
    when = t.days("2023-02-01", 12).astype("datetime64[D]")
    total = np.exp(rng.normal(7.5, 1.1, n))
    open_items = np.exp(rng.normal(6, 1.2, n)) * np.where(rng.random(n) < 0.2, -1, 1)
    term = rng.integers(5, 90, n)
    discount = t.pick([0, 0.5, 1, 2, 3])
    reminded = rng.random(n) < 0.2
    marks = t.pick(["'", "’"])
    words = np.where(reminded, t.pick(["ja", "oui", "sì"]), t.pick(["nein", "non", "no"]))
    t.add("Rechnung", [f"RE-{k:05d}" for k in range(n)], trap="an id")
    t.add("Datum", spelled(when, "%d.%m.%y"))
    t.date("Fällig", when, term, "%d.%m.%y", 1.3)
    t.add(
        "Betrag CHF",
        [grouped(v, m, ".") for v, m in zip(total, marks, strict=True)],
        total,
        1.6 * standard(np.log(total)),
        0.02,
        "|—|offen",
    )
    t.add(
        "Offene Posten",
        [
            ("CHF " + grouped(abs(v), m, ".")) + ("-" if v < 0 else "")
            for v, m in zip(open_items, marks, strict=True)
        ],
        open_items,
        1.5 * standard(np.sign(open_items) * np.log(np.abs(open_items))),
    )
    t.number("Skonto", discount, lambda v: f"{v:g}%", -1.0)
    t.add("Gemahnt", words, reminded * 1, 1.6 * reminded)
    t.add("Kanton", t.pick(["ZH", "GE", "TI", "VD", "BE"]))
    t.draw(0.06)
    return t.table("verspätet", (["0"], ["1"]), "rechnungen.tsv", delimited("\t", "utf-16"))


def shop_json() -> Table:
    """JSON array of nested records: numbers as text, ISO times, lists of tags, labels
    Fraud/fraud /FRAUD/no."""
    t = Draft(7, 3000)
    rng, n = t.rng, t.n
    when = t.days("2024-01-01", 6)
    hours = time_of_day(when)
    amount = np.exp(rng.normal(4.2, 1.0, n))
    age = rng.integers(0, 1500, n)
    tags = [
        list(rng.permutation(["gift", "express", "coupon"])[:k])
        for k in rng.integers(0, 4, n)
    ]
    express = np.array(["express" in tag for tag in tags])
    match = rng.random(n) < 0.8
    free = rng.random(n) < 0.3
    mail = np.where(
        free, t.pick(["mailinator.com", "yopmail.com"]), t.pick(["gmail.com", "gmx.de"])
    )
    t.add("order_id", [f"{v:032x}"[:24] for v in rng.integers(0, 2**62, n)], trap="an id")
    t.add("created_at", spelled(when, "%Y-%m-%dT%H:%M:%SZ"), hours, 1.0 * hour_risk(hours))
    t.number("amount.value", amount, lambda v: f"{v:,.2f}", 1.4, log=True)
    t.add("amount.currency", t.pick(["EUR", "USD", "eur"]))
    t.date(
        "customer.registered",
        when,
        -age,
        "%Y-%m-%d",
        -1.3,
        missing=0.04,
        blanks="None|null|0000-00-00",
    )
    t.add(
        "customer.email",
        [f"user{k}@{d}" for k, d in enumerate(mail)],
        free * 1,
        1.8 * free,
        trap="one for each row, but its domain tells",
    )
    t.add("address_match", [bool(v) for v in match], match * 1, -1.6 * match)
    t.add("tags", tags, express * 1, 1.5 * express)
    t.draw(0.04)
    return t.table(
        "review",
        (["no", "No", "no "], ["Fraud", "fraud ", "FRAUD"]),
        "orders.json",
        nested_json,
    )


def login_zip() -> Table:
    """Zipped CSV (with a Mac's own file): epoch milliseconds, 0:03:25, 1.2 MB, -999,
    customers who come back in the fit and are others in the fresh rows."""
    t = Draft(8, 4000)
    rng, n = t.rng, t.n
    # Customers come back eight times; those of the fresh rows are others.
    owner = np.concatenate(
        [rng.integers(0, 500, t.n_fit), rng.integers(500, 1000, t.n_fit)]
    )
    limit = np.exp(rng.normal(8, 0.7, 1000)).round()[owner]
    habit = rng.normal(0, 1.6, 1000)[owner]
    born = rng.integers(1940, 2005, 1000)[owner]
    when = rng.permutation(t.days("2024-03-01", 3))
    hours = time_of_day(when)
    seconds = rng.geometric(0.004, n)
    size = np.exp(rng.normal(13, 1.5, n))
    speed = rng.normal(40, 12, n)
    lost = rng.random(n) < 0.15
    sizes = [f"{v / 1e6:.1f} MB" if v >= 1e6 else f"{v / 1e3:.0f} KB" for v in size]
    t.add(
        "customer_id",
        [f"C-{k:05d}" for k in owner],
        trap="comes back; fresh ones are others",
    )
    t.add(
        "ts",
        (when.astype("datetime64[ms]").astype(np.int64)),
        hours,
        1.3 * hour_risk(hours),
    )
    t.add("birth_year", born)
    t.add("credit_limit", limit.astype(int), limit)
    t.number(
        "duration",
        seconds,
        lambda v: f"{v // 3600}:{v // 60 % 60:02d}:{v % 60:02d}",
        -1.3,
        log=True,
    )
    t.add("sent", sizes, size, 1.5 * standard(np.log(size)))
    t.add(
        "typing_speed",
        np.where(lost, -999, speed.round(1)),
        np.where(lost, np.nan, speed),
        np.where(lost, 0.7, 1.3 * (speed - 40) / 12),
        trap="-999 is missing",
    )
    agent = t.pick(
        ["Chrome/121.0", "Chrome/122.0", "Safari/17.2", "curl/8.4", "okhttp/4.9"]
    )
    script = np.isin(agent, ["curl/8.4", "okhttp/4.9"])
    t.add("agent", agent, script * 1, 1.2 * script)
    # Nothing in the file tells a new customer's habit: its part is not to be learned.
    t.draw(0.04, hidden=habit)
    return t.table("takeover", (["FALSE"], ["TRUE"]), "events.zip", zipped)


def chargebacks() -> Table:
    """Payments: epoch seconds, 600 merchants, USD 1,234.56, labels Fraud/fraud /no, a
    chargeback date and a refund that give the label away."""
    t = Draft(9, 5000)
    rng, n = t.rng, t.n
    when = t.days("2024-01-01", 8)
    stamp = when.astype("datetime64[s]").astype(np.int64)
    hours = time_of_day(when)
    amount = np.exp(rng.normal(4, 1.2, n))
    share = 1 / np.arange(10, 610)
    shop = rng.choice(600, n, p=share / share.sum())
    risk = rng.normal(0, 1.3, 600)[shop]
    usual = np.exp(rng.normal(4, 0.6, n))
    ratio = amount / usual
    t.add("txn", np.arange(9_000_000, 9_000_000 + n), trap="a number for each row")
    t.add("unix_time", stamp, hours, 1.2 * hour_risk(hours))
    t.add("card", [f"4{k:03d}********{k * 7 % 9999:04d}" for k in rng.integers(0, 900, n)])
    t.add("merchant", [f"{k * 7919 % 99991:05d} SHOP*{k}" for k in shop], risk, 1.0 * risk)
    t.add("amt", [f"USD {v:,.2f}" for v in amount], amount, 1.5 * standard(np.log(ratio)))
    t.add("usual amt", [f"{v:.2f}" for v in usual], usual)
    entry = t.pick(["chip", "Chip ", "SWIPE", "swipe", "keyed", "KEYED", "n/a"])
    read = np.char.strip(np.char.lower(entry))
    t.add("entry", entry, read, 1.6 * (read == "keyed"))
    hit = t.draw(0.03)
    known = hit & (np.arange(n) < t.n_fit)
    back = when + rng.integers(5, 60, n) * DAY
    t.add(
        "chargeback_date",
        [day if k else "" for day, k in zip(spelled(back, "%Y-%m-%d"), known, strict=True)],
        trap="filled only after a fraud: a leak, blank in fresh rows",
    )
    refund = [f"{v:.2f}" if k else "0.00" for v, k in zip(amount, known, strict=True)]
    t.add("refunded", refund, trap="filled only after a fraud: a leak, zero in fresh rows")
    return t.table(
        "outcome", (["no", "No", "no "], ["Fraud", "fraud "]), "payments.csv", delimited()
    )


def churn_notes() -> Table:
    """Churn: free-text notes with quotes and line breaks, 350 agents, £, 2y 3m, stars, the
    same column twice, a nameless index, blank columns."""
    t = Draft(10, 4000)
    rng, n = t.rng, t.n
    when = t.days("2023-06-01", 10)
    fee = np.exp(rng.normal(4, 0.5, n))
    agent = rng.integers(0, 350, n)
    skill = rng.normal(0, 1.0, 350)[agent]
    months = rng.integers(1, 80, n)
    mood = rng.choice(3, n, p=[0.62, 0.28, 0.1])
    said = {
        0: [
            "asked about invoice",
            "changed address",
            "new SIM sent",
            "roaming for holiday",
        ],
        1: ["called about slow speed", "complained about bill", "router replaced twice"],
        2: [
            "wants to cancel",
            "got a better offer elsewhere",
            "asked how to port the number",
        ],
    }
    notes = []
    for k in mood:
        parts = [str(rng.choice(said[int(k)])), str(rng.choice(said[0]))]
        tail = str(
            rng.choice(["", ' ("ok, thanks")', "\ncall back Mon;", ", see ticket 4411"])
        )
        notes.append("; ".join(rng.permutation(parts)) + tail)
    t.add("", np.arange(n), trap="an index without a name")
    t.add(
        "Customer Phone", [f"+44 7{v:09d}" for v in rng.integers(0, 10**9, n)], trap="an id"
    )
    t.add("Contact At", spelled(when, "%d %b %Y, %H:%M"))
    t.number("Fee", fee, lambda v: f"£{v:.2f}", 1.3)
    t.add("Fee", [f"{v:.2f}" for v in fee], trap="the same column twice")
    tenure = [f"{v // 12}y {v % 12}m" for v in months]
    t.add("Tenure", tenure, months, -1.3 * standard(months))
    t.add("Agent", [f"agent.{k:03d}@tele.example" for k in agent], skill, skill)
    t.add("Notes", notes, mood, np.array([0.0, 1.2, 4.0])[mood], 0.05, "|n/a|-")
    stars = rng.integers(1, 6, n)
    t.number("Rating", stars, lambda v: "★" * v + "☆" * (5 - v), -1.0)
    for k in (9, 10):
        t.add(f"Unnamed: {k}", [""] * n, trap="blank")
    t.draw(0.06)
    return t.table(
        "Status", (["active", "Active"], ["churned", "Churned "]), "churn.csv", delimited()
    )


def french_quality() -> Table:
    """French quality control: 3,2 kg and 3 200 g, 1 234,5 with a hard space, oui/non, 32
    spellings of missing, 9999, the same column twice."""
    t = Draft(11, 4000)
    rng, n = t.rng, t.n
    when = t.days("2023-09-01", 9)
    weight = rng.normal(3.2, 0.4, n).clip(1)
    length = rng.normal(1250, 90, n)
    damp = rng.beta(4, 6, n) * 100
    depth = rng.normal(12, 3, n)
    off = rng.random(n) < 0.12
    redo = rng.random(n) < 0.25
    shift = t.pick(["matin", "Matin", "après-midi", "nuit", "NUIT "])
    blanks = "| |n.d.|N/D|NC|nc|?|??|--|néant|inconnu|#N/A|#DIV/0!|NULL|null|none|nan|.|..."
    blanks += "|vide|s.o.|S/O|*|manquant|non mesuré|-|#VALEUR!|(vide)|aucun|NaN|xxx|/"
    grams = rng.random(n) < 0.3
    pieces = [
        grouped(v * 1000, "\u202f", ",", 0) + " g" if g else grouped(v, "", ",", 2) + " kg"
        for v, g in zip(weight, grams, strict=True)
    ]
    t.add("Lot", [f"L{k // 5:05d}" for k in range(n)], trap="five rows a lot")
    t.add("Date", spelled(when, "%d/%m/%Y %Hh%M"))
    t.add("Masse", pieces, weight, 1.5 * standard(weight), 0.08, blanks)
    marks = [grouped(v, "\u00a0", ",", 1) for v in length]
    t.add("Longueur (mm)", marks, length, -1.5 * standard(length), 0.08, blanks)
    t.number("Humidité", damp, lambda v: grouped(v, "", ",", 1) + " %", 1.3)
    t.add(
        "Profondeur",
        [
            grouped(v, "", ",", 1) if not o else "9999"
            for v, o in zip(depth, off, strict=True)
        ],
        np.where(off, np.nan, depth),
        np.where(off, 0.6, 1.3 * (depth - 12) / 3),
        0.08,
        blanks,
        trap="9999 is missing",
    )
    t.add("Retouché", np.where(redo, "oui", "non"), redo * 1, 1.3 * redo)
    night = np.char.strip(np.char.lower(shift))
    t.add("Équipe", shift, night, 1.2 * (night == "nuit"))
    t.add("Équipe", shift, trap="the same column twice")
    t.add("Visa", [""] * n, trap="blank")
    t.draw(0.05)
    return t.table(
        "Défaut",
        (["non", "Non"], ["oui", "Oui"]),
        "qualite.csv",
        delimited(";", "utf-8-sig"),
    )


def brazilian_drift() -> Table:
    """Brazilian transfers, the next six months scored: pipes, R$ 1.234,56, sim/não,
    offsets, km; amounts and PIX grow, and frauds with them."""
    t = Draft(12, 6000)
    rng, n = t.rng, t.n
    when = t.days("2024-01-01", 12)
    age = np.arange(n) / n
    hours = time_of_day(when)
    amount = np.exp(rng.normal(5, 1, n) + 0.8 * age)
    account = np.exp(rng.normal(5, 1.2, n)).round() + 1
    pix = rng.random(n) < 0.1 + 0.7 * age
    way = np.where(pix, "PIX", t.pick(["boleto", "cartão", "TED"]))
    trusted = rng.random(n) < 0.6
    distance = np.exp(rng.normal(3, 1.2, n))
    opened = when.astype("datetime64[D]") - account.astype(int) * DAY
    utc = [text + "-03:00" for text in spelled(when, "%Y-%m-%d %H:%M:%S")]
    t.add("id_transação", [f"{v:x}" for v in rng.integers(2**40, 2**44, n)], trap="an id")
    t.add("data_hora", utc, hours, 1.1 * hour_risk(hours))
    t.number(
        "valor",
        amount,
        lambda v: "R$ " + grouped(v, ".", ","),
        1.4,
        log=True,
        missing=0.02,
        blanks="|s/ valor|N/D",
    )
    t.add(
        "conta_desde",
        spelled(opened, "%d/%m/%Y"),
        account,
        -1.3 * standard(np.log(account)),
    )
    t.add("forma", way, way, 1.2 * (way == "PIX") + 0.6 * (way == "TED"))
    t.add(
        "aparelho_conhecido", np.where(trusted, "sim", "não"), trusted * 1, -1.6 * trusted
    )
    t.number(
        "distância", distance, lambda v: grouped(v, ".", ",", 1) + " km", 1.3, log=True
    )
    t.draw(0.03)
    return t.table("fraude", (["não"], ["sim"]), "transferencias.csv", delimited("|"))


MAKERS = (
    german_payments,
    indian_loans,
    japanese_machines,
    hospital_workbook,
    us_insurance,
    swiss_invoices,
    shop_json,
    login_zip,
    chargebacks,
    churn_notes,
    french_quality,
    brazilian_drift,
)


def tables() -> Iterator[Table]:
    for make in MAKERS:
        about = " ".join((make.__doc__ or "").split())
        yield replace(make(), name=make.__name__, about=about)


if __name__ == "__main__":
    for table in tables():
        fit, fresh = np.split(table.positive, 2)
        print(f"{table.name}: {table.n_fit:,} rows, {fit.mean():.1%} positive")
        print(
            f"  fresh {fresh.mean():.1%} positive; best AP {table.ceiling():.3f}; without"
        )
        print(" ", {name: round(table.ceiling(name), 3) for name in table.terms})
